/**
 * The cost of constraints for writes and deletions, through the in-process client over the in-memory storage,
 * compared with the same storage without constraints.
 */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { ComparisonTable, unlessQuick } from "@plinth/bench";
import type { Resource } from "@plinth/proto";
import { idOf, Partition, type ResourceType, referenceTo, resourceOf } from "@plinth/resource";
import { Thing, ThingSchema, Widget, WidgetSchema } from "../testdata/types.ts";
import { type BenchServer, bareServer, twoDeployments } from "./servers.ts";

const count = unlessQuick(2_000, 20);
const many = unlessQuick(10_000, 200);
const rounds = unlessQuick(7, 1);

/** How many resources are deleted that have so many referrers. */
function targetsOf(referrers: number): number {
	return referrers === 0 ? count : referrers === 100 ? unlessQuick(20, 2) : 1;
}

interface Servers {
	readonly alpha: BenchServer;
	readonly beta: BenchServer;
}

interface Case {
	readonly name: string;
	/** Returns the function to measure, for the i-th resource. */
	prepare(servers: Servers): Promise<(i: number) => Promise<unknown>>;
	readonly count?: number;
}

const thing = (name: string, init: MessageInitShape<typeof ThingSchema> = {}): Resource =>
	resourceOf(Thing, { id: idOf(Thing, name), data: create(ThingSchema, init) });

const widget = (name: string, needs: string): Resource =>
	resourceOf(Widget, {
		id: idOf(Widget, name),
		data: create(WidgetSchema, { needs: referenceTo({ name: needs }) }),
	});

const write = ({ client }: BenchServer, resource: Resource) => client.write({ resource });

const remove = ({ client }: BenchServer, type: ResourceType, name: string) =>
	client.delete({ id: idOf(type, name) });

async function makeTargets(server: BenchServer, targets: number): Promise<void> {
	for (let i = 0; i < targets; i++) {
		await write(server, thing(`target-${i}`));
	}
}

const likes = (i: number, references: number) =>
	Array.from({ length: references }, (_, at) => referenceTo({ name: `target-${(i + at) % 100}` }));

const cases: readonly Case[] = [
	{
		name: "write, a type without references",
		prepare:
			async ({ alpha }) =>
			(i) =>
				write(alpha, resourceOf(Partition, { id: idOf(Partition, `p-${i}`) })),
	},
	...[0, 1, 10].map(
		(references): Case => ({
			name: `write, ${references} local references`,
			async prepare({ alpha }) {
				await makeTargets(alpha, 100);
				return (i) => write(alpha, thing(`t-${i}`, { likes: likes(i, references) }));
			},
		}),
	),
	{
		name: "write, 1 foreign reference",
		async prepare({ alpha, beta }) {
			await makeTargets(alpha, 100);
			return (i) => write(beta, widget(`w-${i}`, `target-${i % 100}`));
		},
	},
	...[0, 100, many].map(
		(referrers): Case => ({
			name: `delete, once referenced by ${referrers}`,
			count: targetsOf(referrers),
			async prepare({ alpha }) {
				const targets = targetsOf(referrers);
				await makeTargets(alpha, targets);
				for (let target = 0; target < targets; target++) {
					for (let i = 0; i < referrers; i++) {
						const like = [referenceTo({ name: `target-${target}` })];
						await write(alpha, thing(`user-${target}-${i}`, { likes: like }));
					}
				}
				// The references are UNSET: the deletion starts, and they are cleared afterwards.
				return (i) => remove(alpha, Thing, `target-${i}`);
			},
		}),
	),
];

async function measure(servers: Servers, each: Case): Promise<number> {
	const run = await each.prepare(servers);
	const times = each.count ?? count;
	const start = performance.now();
	for (let i = 0; i < times; i++) {
		await run(i);
	}
	return ((performance.now() - start) * 1000) / times;
}

async function bare(each: Case): Promise<number> {
	await using server = await bareServer([Thing, Widget]);
	return await measure({ alpha: server, beta: server }, each);
}

async function constrained(each: Case): Promise<number> {
	const { alpha, beta } = await twoDeployments();
	await using _alpha = alpha;
	await using _beta = beta;
	return await measure({ alpha, beta }, each);
}

// Timers of Plinth keep no process alive, and a write that conflicts waits on one.
const alive = setInterval(() => {}, 1_000);
const table = new ComparisonTable("Calls, in process and in memory", "µs");
for (const each of cases) {
	await table.measure(
		each.name,
		{ "with constraints": () => constrained(each), "bare storage": () => bare(each) },
		{ rounds: each.count === 1 ? unlessQuick(2, 1) : rounds, warmUpRounds: 0 },
	);
}
clearInterval(alive);
table.print();
