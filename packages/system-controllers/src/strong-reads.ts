/** Call options of a read that is not older than the call, on whatever server it runs. */
export const strongly = { headers: { "x-plinth-consistency-mode": "consistent" } };
