// A price that binds: what a button submits is the request whose price it shows, and nothing else.

import { post } from "../api.js";
import { announce } from "../dom.js";
import { findMistake } from "../forms.js";
import { amount } from "../format.js";

const PAUSE = 250; // milliseconds of quiet after which a change is worth a question

// Binds the submit button of a form to an offer: a request, the plan that the service made of exactly this
// request, and the key under which it is submitted. While the form says anything else, there is no offer and
// the button is disabled. The form provides:
// - request(): the request as the form is now;
// - mistaken(), working(): show that a field is wrong, or that the price is being computed;
// - priced(plan, body, signal): show a plan; may be asynchronous;
// - failed(error): show why there is no plan.
export function offers(made, send, words, { request, mistaken, working, priced, failed }) {
  let offer = null;
  let waiting = null;
  let asking = new AbortController();
  let asked = "";
  const show = (next, text = words) => {
    offer = next;
    send.disabled = !offer?.plan.fits;
    send.textContent = !offer
      ? text
      : offer.body.rehearsal
        ? "Rehearse for free"
        : `${words} for ${amount(offer.plan.cost)}`;
  };
  const ask = () => {
    asked = JSON.stringify(request());
    stop();
    if (findMistake(made)) {
      show(null);
      mistaken();
      return;
    }
    show(null, "Working out the price…");
    working();
    asking = new AbortController();
    waiting = setTimeout(() => question(asking.signal), PAUSE);
  };
  const question = async (signal) => {
    try {
      const body = request();
      const plan = await post("/v1/plans", body, { signal });
      await priced(plan, body, signal);
      if (signal.aborted) return;
      show({ body, plan, key: freshKey() });
      announce(
        body.rehearsal
          ? "A rehearsal is free."
          : `Cost ${amount(plan.cost)}. ` +
              (plan.fits
                ? `${amount(plan.remaining_after.cap ?? plan.remaining_after.budget)} would remain.`
                : "This does not fit."),
      );
    } catch (error) {
      if (error.name === "AbortError") return;
      show(null);
      failed(error);
      if (error.slug === "rate-limited") waiting = setTimeout(ask, 1000 * (error.retryAfter ?? 5));
    }
  };
  const stop = () => {
    clearTimeout(waiting);
    asking.abort();
  };
  return {
    ask,
    stop,
    holds: () => Boolean(offer?.plan.fits),
    // Leaving a field is a `change` too: if nothing is new the price stays, or a click on the button would be
    // lost.
    isNew: () => asked !== JSON.stringify(request()),
    // Submits what was offered; on a refusal the price is asked for again.
    async submit() {
      const { body, plan, key } = offer;
      try {
        return await post("/v1/jobs", { ...body, quote: plan.quote }, { idempotencyKey: key });
      } catch (error) {
        if (["budget-exhausted", "cap-exhausted", "quote-mismatch"].includes(error.slug)) ask();
        throw error;
      }
    },
  };
}

// Names one submission, so that sending it twice makes one job.
function freshKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16)); // `randomUUID` is missing without HTTPS
  return Array.from(bytes, (each) => each.toString(16).padStart(2, "0")).join("");
}
