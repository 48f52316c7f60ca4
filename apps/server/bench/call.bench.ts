/*
 * The cost of calls over the network: the product with tokens, limits, metrics and audit, next to other servers of the
 * same calls in the same run, above all one in grpc-go. docs/server-load.md describes how to read it.
 *
 *   pnpm bench call
 *   pnpm bench call --only=read,write --callers=16 --connections=1
 *   pnpm bench call --against=../../../plinth-before --contenders=plinth,against
 *   pnpm bench call --json
 */
import { interleave, numberOption, unlessQuick } from "@plinth/bench";
import { startContenders } from "./harness/contenders.ts";
import { buildGoPrograms } from "./harness/go-programs.ts";
import { type Protocol, startClient } from "./harness/load-client.ts";
import { processors } from "./harness/processors.ts";
import { Report, type Rounds } from "./harness/report.ts";
import { chosenWorkloads, type Round, type Workload } from "./harness/workloads.ts";

const rounds = numberOption("rounds", 5, 1);

/** Connect's JSON instead of gRPC, between the contenders that speak it. */
const protocol: Protocol = process.argv.includes("--json") ? "Connect, JSON" : "gRPC";
const workloads = chosenWorkloads();
const go = protocol === "gRPC" ? buildGoPrograms() : undefined;
const contenders = await startContenders(protocol, go);
const client = startClient(protocol, go);
if (processors === undefined) {
	console.log("Servers and client share all processors: there is no taskset, or one processor.");
}
try {
	const report = new Report(contenders.baseline);
	// All code of a server is compiled for all workloads before anything counts.
	for (const workload of unlessQuick(workloads, [])) {
		await roundsOf(workload, 1);
	}
	for (const workload of workloads) {
		report.add(workload, await roundsOf(workload, rounds));
	}
	report.print();
} finally {
	client.stop();
	await contenders.stop();
}
process.exit(0);

async function roundsOf(workload: Workload, count: number): Promise<Rounds> {
	const done = new Map<string, Round[]>();
	const runs = [...contenders.servers].map(([name, server]) => {
		const own: Round[] = [];
		done.set(name, own);
		const run = async () => {
			const round = await workload.run(client, server).catch((cause: unknown) => {
				throw new Error(`${workload.name} failed at ${name}`, { cause });
			});
			own.push(round);
			return round.cost;
		};
		return [name, run] as const;
	});
	await interleave(Object.fromEntries(runs), { rounds: count, warmUpRounds: 0 });
	return done;
}
