/* A process that attacks one server with everything at once, for a bounded time, and prints what came of it. */
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { Tally } from "./attack.ts";
import { attacks } from "./attacks.ts";

/** How long attacks have to notice that they are over. */
const graceSeconds = 5;

const { values: flags } = parseArgs({
	options: {
		address: { type: "string", default: "" },
		token: { type: "string", default: "" },
		namespace: { type: "string", default: "" },
		powerless: { type: "string", default: "" },
		seconds: { type: "string", default: "10" },
		attacks: { type: "string", default: Object.keys(attacks).join(",") },
	},
});

const { hostname } = new URL(flags.address);
if (hostname !== "127.0.0.1") {
	throw new Error(`${flags.address} is not an address of this machine's loopback`);
}

const end = AbortSignal.timeout(Number(flags.seconds) * 1_000);
const chosen = flags.attacks.split(",").map((name) => {
	const attack = attacks[name];
	if (attack === undefined) {
		throw new Error(`no attack ${name}: there are ${Object.keys(attacks).join(", ")}`);
	}
	return { name, attack, tally: new Map() satisfies Tally };
});
// What waits for a connection that was ended may never settle.
const overdue = delay((Number(flags.seconds) + graceSeconds) * 1_000);
await Promise.race([
	Promise.all(chosen.map(({ attack, tally }) => attack({ ...flags, end }, tally))),
	overdue,
]);
for (const { name, tally } of chosen) {
	process.stdout.write(`${name}: ${JSON.stringify(Object.fromEntries(tally))}\n`);
}
process.exit(0);
