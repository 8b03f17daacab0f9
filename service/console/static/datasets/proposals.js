// What one curator may not allow alone: offers to propose it to a second one.

import { post } from "../api.js";
import { h, toast } from "../dom.js";
import { button } from "../widgets.js";

/**
 * Does what one curator does alone; a refusal for want of a second one carries an offer to propose it.
 * @param {() => Promise<any>} act
 * @param {any} proposal the request that proposes the same
 * @param {() => void} close closes the dialog in which the offer is shown
 */
export async function alone(act, proposal, close) {
  try {
    return await act();
  } catch (error) {
    if (error.slug !== "second-needed") throw error;
    const propose = async () => {
      await post("/v1/requests", proposal);
      close();
      toast("Proposed. It is done when a second curator agrees.");
      location.hash = "#/requests";
    };
    error.offer = h("div", { class: "row" }, button("Propose to a second curator", propose, "small"));
    throw error;
  }
}
