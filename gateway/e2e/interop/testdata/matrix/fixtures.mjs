// What the matrix's servers in TypeScript have in common.
export const text = (t) => ({ content: [{ type: "text", text: t }] });
export const people = ["Ada", "Alan", "Grace"];
export const starting = (all, value) => all.filter((one) => one.startsWith(value));
export const pause = () => new Promise((resolve) => setTimeout(resolve, 500));

export const schemaOfName = {
  type: "object",
  properties: { name: { type: "string" } },
  required: ["name"],
};

// That the call of "wait" was cancelled, for the call of "cancelled".
let tell;
const told = new Promise((resolve) => (tell = resolve));
export const cancellation = {
  of: (signal) =>
    new Promise((resolve) => {
      const end = () => {
        tell("cancelled");
        resolve();
      };
      if (signal.aborted) end();
      else signal.addEventListener("abort", end);
    }),
  seen: () => Promise.race([told, new Promise((resolve) => setTimeout(resolve, 10_000, "not cancelled").unref())]),
};
