/**
 * Records the exchanges of this code:
 *
 *     node src/exchanges/record.fixture.ts > testdata/exchanges/version-<newest version of the protocol>.json
 */
import { Lab } from "../lab/lab.fixture.ts";
import { type RecordedExchange, recording } from "./recorded-exchanges.fixture.ts";
import { runScenario } from "./scenario.fixture.ts";

const exchanges: RecordedExchange[] = [];
const uids: Record<string, string> = {};
// Version 1 can't plan deletions.
const { planDeletion } = await import("./plan.fixture.ts").catch(() => ({
	planDeletion: undefined,
}));
const outcome = await runScenario(
	new Lab(1, {}, recording(exchanges)),
	(name, uid) => {
		uids[name] = uid;
	},
	planDeletion,
);
console.error(outcome);
console.log(JSON.stringify({ uids, exchanges }, null, "\t"));
