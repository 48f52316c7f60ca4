/*
 * The latency of calls at half load, of the server with either implementation of HTTP/2. Half load is half of the calls
 * per second that the same server has served shortly before, to callers that make one call after the other. Calls start
 * at that rate, however long they take, and each latency counts from the time at which its call was due.
 *
 *   pnpm bench latency
 *   pnpm bench latency --only=read --seconds=10
 *   pnpm bench latency --rate=2000          # calls per second, the same for all servers
 *   pnpm bench latency --contenders=plinth,node-http2,grpc-go
 */
import {
	ComparisonTable,
	format,
	interleave,
	numberOption,
	quantile,
	textOption,
	unlessQuick,
} from "@plinth/bench";
import { startContenders } from "./harness/contenders.ts";
import { buildGoPrograms } from "./harness/go-programs.ts";
import { type CallOperation, startClient } from "./harness/load-client.ts";
import type { MeasuredServer } from "./harness/measured-process.ts";
import { commandTo } from "./harness/workloads.ts";

const rounds = numberOption("rounds", 5, 1);
const seconds = numberOption("seconds", 3, 0.2);
/** For the rate that half load is half of. */
const calls = numberOption("calls", 10_000, 80);
const load = { callers: 64, connections: 4, watches: 0 };
const only = textOption("only") ?? "";
const operations: readonly CallOperation[] = ["read", "create", "update"];
const chosen = operations.filter((operation) => only.split(",").some((p) => operation.includes(p)));

const go = buildGoPrograms();
const contenders = await startContenders("gRPC", go, ["plinth", "node-http2"]);
const client = startClient("gRPC", go);
const medians = new ComparisonTable("Median latency at half load", "µs", contenders);
const tails = new ComparisonTable("99th percentile of the latency at half load", "µs", contenders);
try {
	for (const operation of chosen) {
		await compare(operation);
	}
	medians.print();
	tails.print();
} finally {
	client.stop();
	await contenders.stop();
}
process.exit(0);

async function compare(operation: CallOperation): Promise<void> {
	const maxima = await eachInTurn(unlessQuick(3, 1), async (server) => {
		const result = await client.run(commandTo(server, { operation, ...load, count: calls }));
		return result.count / result.seconds;
	});
	const rates = Object.fromEntries(
		Object.entries(maxima).map(([name, figures]) => {
			const half = quantile(figures, 0.5) / 2;
			return [name, numberOption("rate", half, half)];
		}),
	);
	const texts = Object.entries(rates).map(([name, rate]) => `${name} ${format(rate)}`);
	console.log(`${operation}, calls per second: ${texts.join(", ")}`);
	const p99s: Record<string, number[]> = {};
	const p50s = await eachInTurn(rounds, async (server, name) => {
		const perSecond = rates[name] ?? Number.NaN;
		const count = Math.ceil(perSecond * seconds);
		const result = await client.run(commandTo(server, { operation, ...load, count, perSecond }));
		const own = p99s[name] ?? [];
		own.push(result.p99Microseconds ?? Number.NaN);
		p99s[name] = own;
		return result.p50Microseconds ?? Number.NaN;
	});
	medians.add(operation, p50s);
	tails.add(operation, p99s);
}

/** Rounds of all servers in turn. */
function eachInTurn(
	count: number,
	run: (server: MeasuredServer, name: string) => Promise<number>,
): Promise<Readonly<Record<string, readonly number[]>>> {
	const runs = [...contenders.servers].map(
		([name, server]) => [name, () => run(server, name)] as const,
	);
	return interleave(Object.fromEntries(runs), { rounds: count, warmUpRounds: 0 });
}
