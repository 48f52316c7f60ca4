import { create } from "@bufbuild/protobuf";
import { ComparisonTable, interleave, nanosecondsPer, unlessQuick } from "@plinth/bench";
import { ResourceSchema } from "@plinth/proto";
import { silentLogger, systemRuntime } from "@plinth/runtime";
import { createMemoryBackend, MemoryEventStorage } from "@plinth/storage";
import { EventLog } from "../src/event-log.ts";
import { artist, happened } from "../src/events.fixture.ts";

/*
 * What an event costs that controllers record, in one run: recorded here, and as a resource of its own in the memory
 * storage, as other control planes keep events. The flood has an event for each of 100,000 resources, of which the log keeps
 * 10,000.
 */

function newLog(): EventLog {
	return new EventLog({
		storage: new MemoryEventStorage(systemRuntime.clock),
		...{ server: "bench", isShared: false, runtime: systemRuntime, logger: silentLogger },
	});
}

const resources = 100_000;
const flood = Array.from({ length: resources }, (_, n) => happened(`artist-${n}`));
const one = happened("miles");

const log = newLog();
const floodedLog = newLog();
const backend = createMemoryBackend();

async function asResources(count: number, distinct: number): Promise<number> {
	const versions = new Map<number, string>();
	for (let n = 0; n < count; n++) {
		const at = n % distinct;
		const id = { ...artist(`event-${distinct}-${at}`), uid: `uid-${distinct}-${at}` };
		const stored = await backend.lookup({
			name: id.name,
			...(id.type && { type: id.type }),
			...(id.tenancy && { tenancy: id.tenancy }),
		});
		const { version } = await backend.commit([
			{
				op: "put",
				resource: create(ResourceSchema, {
					id,
					metadata: { message: "was booked", count: `${n}` },
				}),
				expectedVersion: stored?.version ?? "",
			},
		]);
		versions.set(at, version);
	}
	return versions.size;
}

const table = new ComparisonTable("Events", "µs");
const cases = [
	{
		name: "one event that occurs again",
		record: (count: number) => {
			for (let n = 0; n < count; n++) {
				log.record(one);
			}
			return log.state.own;
		},
		distinct: 1,
	},
	{
		name: "a flood, one event of each resource",
		record: (count: number) => {
			for (let n = 0; n < count; n++) {
				floodedLog.record(flood[n % resources] ?? one);
			}
			return floodedLog.state.own;
		},
		distinct: resources,
	},
];
for (const { name, record, distinct } of cases) {
	const contenders = {
		recorded: async () => {
			const count = unlessQuick(200_000, 1_000);
			return (await nanosecondsPer(count, async () => record(count))) / 1_000;
		},
		"as a resource": async () => {
			const count = unlessQuick(20_000, 200);
			return (await nanosecondsPer(count, () => asResources(count, distinct))) / 1_000;
		},
	};
	table.add(name, await interleave(contenders, { rounds: unlessQuick(8, 2), warmUpRounds: 1 }));
}
table.print();

const { own, unstored } = floodedLog.state;
console.log(`after the flood: ${own} events are kept, ${unstored} resources are to be written`);
