"""Mutants of `core`: sensitivities, the probe, plans and their losses, and mechanisms."""

from __future__ import annotations

SENSITIVITY = {
    "core/statistics/base.py": (
        # A record counts as half.
        ("return Sensitivity(monotone=True)", "return Sensitivity(l1=0.5, l2=0.5, monotone=True)"),
    ),
    "core/statistics/counts.py": (
        ("l1=columns, l2=math.sqrt(columns)", "l1=1, l2=math.sqrt(columns)"),
        ("l1=columns, l2=math.sqrt(columns)", "l1=columns, l2=1"),
        ("one_block=columns == 1", "one_block=True"),
        ("monotone=True, touched=columns", "monotone=True, touched=1"),
    ),
    "core/statistics/histograms.py": (
        ("return _ones(len(self.view.binnings))", "return _ones(1)"),
        ("return _ones(self.picks.shape[1])", "return _ones(1)"),
        ("Sensitivity(np.array([2.0 * WHOLE])", "Sensitivity(np.array([1.0 * WHOLE])"),
        (
            "np.array([2.0 * WHOLE]), l1=math.inf, l2=math.inf",
            "np.array([2.0 * WHOLE]), l1=math.inf, l2=math.inf, monotone=True",
        ),
        ("np.array([2.0 * WHOLE]), l1=math.inf,", "np.array([2.0 * WHOLE]), l1=1,"),
    ),
    "core/statistics/scores.py": (
        ("reach = float(self.view.reach)", "reach = float(self.view.reach) / 2"),
        ("linf=2.0 * self.view.base.radius", "linf=1.0 * self.view.base.radius"),
    ),
    "core/statistics/fourier.py": (
        (
            "Sensitivity(np.array([float(self.length)]), l1=math.sqrt(self.shape[1]))",
            "Sensitivity(np.array([float(self.length) / 2]), l1=math.sqrt(self.shape[1]))",
        ),
        (
            "Sensitivity(np.array([float(self.length)]), l1=math.sqrt(self.shape[1]))",
            "Sensitivity(np.array([float(self.length)]))",
        ),
    ),
    "core/statistics/sums.py": (
        (
            "Sensitivity(np.array([float(self.view.radius)]), l1=math.sqrt(self.view.width))",
            "Sensitivity(np.array([float(self.view.radius) / 2]), l1=math.sqrt(self.view.width))",
        ),
        (
            "Sensitivity(np.array([float(self.view.radius)]), l1=math.sqrt(self.view.width))",
            "Sensitivity(np.array([float(self.view.radius)]))",
        ),
        (
            "scales = self.radii.astype(np.float64)[:, None] * WEIGHT_ONE",
            "scales = self.radii.astype(np.float64)[:, None] * (WEIGHT_ONE / 2)",
        ),
        # The radius of one centre for all of them.
        (
            "scales = self.radii.astype(np.float64)[:, None] * WEIGHT_ONE",
            "scales = np.array([[float(self.radii.min()) * WEIGHT_ONE]])",
        ),
        ("replace(super().sensitivity, l1=math.sqrt(self.shape[1]))", "replace(super().sensitivity, l1=1.0)"),
        ("Sensitivity(np.array([float(self.rows.radius)])", "Sensitivity(np.array([self.rows.radius / 2])"),
        ("scale = np.array([float(self.radius) * WEIGHT_ONE])", "scale = np.array([float(self.radius)])"),
        (
            "length = self.view.radius * WEIGHT_ONE * math.sqrt(2)",
            "length = float(self.view.radius * WEIGHT_ONE)",
        ),
        ("Sensitivity(np.array([float(self.radius)])", "Sensitivity(np.array([float(self.radius) / 2])"),
        (
            "np.where(rows == columns, 1.0, math.sqrt(0.5)) * float(self.steps) ** 2",
            "np.where(rows == columns, 1.0, 0.5) * float(self.steps) ** 2",
        ),
        ("Sensitivity(scales[None, :], l1=float(width))", "Sensitivity(scales[None, :])"),
        ("l1=float(entries), l2=math.sqrt(entries)", "l1=1.0, l2=math.sqrt(entries)"),
        ("l1=float(entries), l2=math.sqrt(entries)", "l1=float(entries), l2=1.0"),
        ("l2=math.sqrt(entries), touched=entries", "l2=math.sqrt(entries), touched=1"),
    ),
}

PROBE = {
    "core/probe.py": (
        ("if source.domain.fingerprint != plan.domain.fingerprint:", "if False:"),
        ("if statistic.kind not in step.statistics:", "if False:"),
        ("if statistic.domain != self.plan.domain.fingerprint:", "if False:"),
        ("if self._left[step_name] == 0:", "if False:"),
        # A measurement that fails half-way could be had again.
        (
            "self._left[step_name] -= 1\n        released = self._release(step, statistic)\n",
            "released = self._release(step, statistic)\n        self._left[step_name] -= 1\n",
        ),
        ("self._left[step_name] = 0  #", "self._left[step_name] -= 0  #"),
        (" or len(statistic.schedule) != step.repeats:", ":"),
        ("if isinstance(statistic, CoverageLoop):\n", "if False:\n"),
        ("if geometry.fingerprint != self.plan.domain.fingerprint:", "if False:"),
        ("if name in self.draws:", "if False:"),
        # Covered records come back.
        ("set_counts.change(parts, 1 if before.opens_level else -1)", "set_counts.change(parts, 1)"),
        # Other coins in each round.
        (
            "before = LoopRound(cover, coins, tuple(picks))",
            "before = LoopRound(cover, Coins(random_bytes(32), mechanism.keep), tuple(picks))",
        ),
        ("self.transcript.append(Release(step_name, released))", "pass"),
    ),
}

PLAN = {
    "core/plan.py": (
        ("if not self.composition.within(self.budget):", "if False:"),
        ("if len({step.name for step in self.steps}) != len(self.steps):", "if False:"),
        ("(step.mechanism.loss.for_group(rows), step.uses)", "(step.mechanism.loss, step.uses)"),
        (
            'return 1 if getattr(self.mechanism, "covers_all_repeats", False) else self.repeats',
            "return 1",
        ),
        ('if isinstance(self.mechanism, CoverageChoice) != (statistic == "coverage"):', "if False:"),
        ('if statistic in BOUNDED_BY_ENTRY and self.mechanism.norm != "linf":', "if False:"),
        ("return math.ceil(self.composition.approximate_delta * DELTA_UNIT)", "return 0"),
        ("if not asked <= most:", "if asked > most:"),
    ),
    "core/privacy/losses.py": (
        ("(8 if self.bounded_range else 2)", "8"),
        ("return Gaussian(self.mu * records)", "return Gaussian(self.mu * math.sqrt(records))"),
        ("return ZCDP(self.rho * records**2)", "return ZCDP(self.rho * records)"),
        ("return Pure(self.epsilon * records, self.bounded_range)", "return self"),
        ("self.delta * records * math.exp(epsilon - self.epsilon)", "self.delta * records"),
        ("if not (math.isfinite(value) and value > 0):", "if not math.isfinite(value):"),
    ),
    "core/privacy/composition.py": (
        ("mu_squared.append(mu * mu * times)", "mu_squared.append(mu * mu)"),
        ("pure += Fraction(epsilon) * times", "pure += Fraction(epsilon)"),
        ("pure_rho.append(loss.rho * times)", "pure_rho.append(loss.rho)"),
        ("zcdp_rho.append(rho * times)", "zcdp_rho.append(rho)"),
        ("approximate_delta += Fraction(delta) * times", "approximate_delta += Fraction(delta)"),
        ("return min(1.0, min(candidates) + spent)", "return min(1.0, min(candidates))"),
        ("(self.mu_squared / 2 + self.pure_rho + self.zcdp_rho", "(self.mu_squared / 2 + self.zcdp_rho"),
        ("left = exact - self.approximate_epsilon - self.pure", "left = exact - self.pure"),
        (
            "if self.mu_squared == 0 and self.zcdp_rho == 0 and left >= 0:",
            "if self.mu_squared == 0 and left >= 0:",
        ),
    ),
    "core/privacy/shares.py": (
        ("return self._epsilon(1.0) / self.rows_per_person", "return self._epsilon(1.0)"),
        ("alone /= rows * math.exp(epsilon)", "alone /= rows"),
    ),
    "core/privacy/budget.py": (
        ("if scaled.denominator != 1 and not rounding_down:", "if False:"),
        ("return math.ceil(Fraction(amount) * unit)", "return math.floor(Fraction(amount) * unit)"),
    ),
}

NOISE = {
    "core/mechanisms/base.py": (("OUTWARDS = 1 + 2.0**-50", "OUTWARDS = 1.0"),),
    "core/mechanisms/noise.py": (
        ("self._scales(total, sensitivity, self.mu)", "self._scales(total, sensitivity, 2 * self.mu)"),
        (
            "sensitivity, self.epsilon)\n        return total + sampler.laplace",
            "sensitivity, 2 * self.epsilon)\n        return total + sampler.laplace",
        ),
        (
            "sensitivity, self.epsilon)\n        return sampler.l2",
            "sensitivity, 2 * self.epsilon)\n        return sampler.l2",
        ),
        ('norm: ClassVar[Norm] = "l1"', 'norm: ClassVar[Norm] = "l2"'),
        ("if not sensitivity.one_block or total.ndim != 2:", "if False:"),
        ("if not math.isfinite(factor):", "if False:"),
        (
            "np.broadcast_to(sensitivity.scales * (factor",
            "np.broadcast_to(sensitivity.scales.min() * (factor",
        ),
    ),
    "core/mechanisms/choice.py": (
        ("(1 if sensitivity.monotone else 2)", "1"),
        (
            "if self.in_each_row and (not sensitivity.one_block or total.ndim != 2):",
            "if self.in_each_row and total.ndim != 2:",
        ),
        ("(reach * (self.picks + touched) * OUTWARDS)", "(reach * self.picks * OUTWARDS)"),
        ("math.sqrt(2 * self.amount / self.picks)", "math.sqrt(2 * self.amount)"),
        ("sampler.choices(np.abs(row), rate, self.picks)", "sampler.choices(row, rate, self.picks)"),
        (
            "self.picks if sensitivity.touched is None else min(sensitivity.touched, self.picks)",
            "1 if sensitivity.touched is None else min(sensitivity.touched, self.picks)",
        ),
    ),
    "core/mechanisms/threshold.py": (
        ("len(total.cells)) > self.limit]", "len(total.cells)) >= self.limit]"),
        ("np.sort(np.concatenate([occupied, self._empty_ones(total, scale)]))", "np.sort(occupied)"),
        (
            "if sensitivity.scales.size != 1 or sensitivity.l1 != 1 or sensitivity.l2 != 1:",
            "if sensitivity.scales.size != 1:",
        ),
        ("place += skip + 1", "place += skip + 2"),
    ),
    "core/mechanisms/coverage_choice.py": (
        ('if self.accounting != "pure":\n            return 1 << 64', "if True:\n            return 1 << 64"),
        ("return min(constant, _coverage_rate(self.epsilon, self.delta))", "return constant"),
        ("counts == groups[group - 1])", "counts >= groups[group - 1])"),
        ("tails + np.log(members)", "tails"),
    ),
    "core/mechanisms/sampler.py": (
        # Rounding that is left to doubles.
        (
            "uncertain = np.flatnonzero(~((below == above) & (above < 2.0**51)))",
            "uncertain = np.flatnonzero(~((below == above) & (above < 2.0**51)))[:0]",
        ),
        ("np.negative(magnitude, out=magnitude, where=words > _LOW_BITS)", "pass"),
        ("        if number < limit:\n            return number", "        return number % limit"),
        ("grown: Floats = np.maximum(values * (1 + (ULPS if up else -ULPS) * EPS), 0.0)", "grown = values"),
        ("if first == last < len(weights) and word > 0:", "if first < len(weights):"),
        ("sign * near * short[:, None] * scales", "near * short[:, None] * scales"),
        ("if least >= limit:\n        return limit", "if least > limit:\n        return limit"),
    ),
}
