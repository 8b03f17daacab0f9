// Numbers, moments and privacy in words.

export const COUNT = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });

export function number(value, digits = 4) {
  const x = Number(value);
  if (!Number.isFinite(x)) return "–";
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size >= 1e7 || size < 1e-4) {
    const [mantissa, exponent] = x.toExponential(Math.max(0, digits - 2)).split("e");
    return `${Number(mantissa)}×10${superscript(Number(exponent))}`;
  }
  return new Intl.NumberFormat("en-GB", { maximumSignificantDigits: digits }).format(x);
}

function superscript(value) {
  return String(value)
    .replace("-", "⁻")
    .replace(/\d/g, (d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(d)]);
}

/**
 * A released number with its 95% interval, rounded to a tenth of the noise at least, ends outwards; one that
 * noise hides is told by its upper end where it cannot be below `least`. Without an interval, the number alone.
 * @param {number} value
 * @param {number[]} ends
 * @param {{words?: (value: number, digits?: number) => string, least?: number}} [options]
 */
export function estimateWords(value, [low, high], { words = number, least = -Infinity } = {}) {
  const noise = Math.max(high - value, value - low) / 2;
  if (!(noise > 0)) return { value: words(value), interval: "" };
  const unit = 10 ** Math.ceil(Number(Math.log10(noise / 10).toFixed(9)));
  const at = (x, side) => words(Number((side(Number((x / unit).toFixed(6))) * unit).toPrecision(12)), 12);
  const last = at(high, Math.ceil);
  const first = Math.floor(low / unit) * unit;
  if (first <= least) return { value: `not more than ${last}`, interval: "" };
  return { value: at(value, Math.round), interval: `${at(low, Math.floor)} to ${last}` };
}

// The size of a cluster with its interval, where a result states one.
export function sizeWords(size, known, i) {
  const whole = (value) => COUNT.format(Math.round(value));
  if (!known?.size_low) return `about ${whole(Math.max(0, size))}`;
  const words = { words: whole, least: 0 };
  const { value, interval } = estimateWords(size, [known.size_low[i], known.size_high[i]], words);
  return interval ? `${value} (${interval})` : value;
}

export function percent(share, digits = 2) {
  if (!Number.isFinite(share)) return "–";
  if (share > 0 && share < 0.0001) return "< 0.01%";
  return `${new Intl.NumberFormat("en-GB", { maximumSignificantDigits: digits }).format(share * 100)}%`;
}

export function count(value) {
  return Math.abs(value) < 10 && !Number.isInteger(value) ? number(value, 2) : COUNT.format(value);
}

export function plural(n, one, many = `${one}s`) {
  return `${COUNT.format(n)} ${n === 1 ? one : many}`;
}

export function overrunsInWords(jobs) {
  if (jobs === 0) return "no job took longer than planned or ended at a limit";
  return (
    `${plural(jobs, "job")} took longer than planned or ended at a limit, which revealed ` +
    `${jobs === 1 ? "its run time" : "their run times"}`
  );
}

export function bytes(value) {
  const names = ["B", "kB", "MB", "GB", "TB"];
  let size = value;
  let i = 0;
  while (size >= 1000 && i < names.length - 1) {
    size /= 1000;
    i += 1;
  }
  return `${number(size, 3)} ${names[i]}`;
}

export function moment(text) {
  if (!text) return "–";
  const date = new Date(text);
  const today = new Date();
  const time = date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  if (date.toDateString() === today.toDateString()) return `today ${time}`;
  return (
    `${date.toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" })} ` +
    `${time.slice(0, 5)}`
  );
}

// Amounts: under `zcdp` the currency is rho, with the equivalent epsilon.
export function currency(amount) {
  return amount && amount.rho !== undefined ? "rho" : "epsilon";
}

function symbol(amount) {
  return currency(amount) === "rho" ? "ρ" : "ε";
}

export function value(amount) {
  return Number(amount?.[currency(amount)] ?? 0);
}

export function amount(a, digits = 4) {
  return `${symbol(a)} ${number(value(a), digits)}`;
}

export function delta(text) {
  return `δ ${number(Number(text), 3)}`;
}

// A text of the service with its smallest decimals as powers of ten, digit for digit.
export function withPowers(text) {
  return text.replace(/(?<![\w.])0\.(0{4,})([1-9]\d*)/g, (_, zeros, digits) => {
    const rest = digits.slice(1).replace(/0+$/, "");
    return `${digits[0]}${rest && `.${rest}`}×10${superscript(-zeros.length - 1)}`;
  });
}

function oneIn(probability) {
  const p = Number(probability);
  return p > 0 ? `one in ${COUNT.format(Math.round(1 / p))}` : "never";
}

const LARGEST_FACTOR = 1e9;

// The largest chance of telling whether somebody is in the data, after a coin toss.
export const chanceOfGuess = (epsilon) => 1 / (1 + Math.exp(-Number(epsilon)));

export function oddsInWords(epsilon) {
  const factor = Math.exp(Number(epsilon));
  return factor > LARGEST_FACTOR
    ? "nothing is limited in practice"
    : `odds change by a factor of at most ${number(factor, 3)}`;
}

// What an epsilon means to somebody who wonders whether a person's record is in the data.
export function epsilonInWords(epsilon, deltaText, unit) {
  const factor = Math.exp(Number(epsilon));
  if (factor > LARGEST_FACTOR)
    return `An epsilon this large limits nothing in practice: a result may show that ${unit === "row" ? "a record is" : "a person is"} in the data.`;
  const sure = chanceOfGuess(epsilon);
  const people = {
    person: "a person's records",
    "person in a period": "a person's records of one period",
  };
  const whose = people[unit] ?? "a record";
  const sentence =
    `Whatever anybody could conclude from the result is at most ${number(factor, 3)} times as likely with ` +
    `${whose} in the data as without. Somebody who thought it a coin toss whether ${whose} ` +
    `${unit in people ? "are" : "is"} in the data can become at most ${percent(sure, 3)} sure of it`;
  return Number(deltaText) > 0
    ? `${sentence}, except with a probability of ${oneIn(deltaText)}.`
    : `${sentence}.`;
}

export function strength(epsilon) {
  const e = Number(epsilon);
  if (e <= 0.1) return "very strong protection";
  if (e <= 1) return "strong protection";
  if (e <= 3) return "moderate protection";
  if (e <= 10) return "weak protection";
  return "hardly any protection";
}

export function sentence(words) {
  const begun = `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}
