/** What is measured: each workload with its numbers of callers and connections. */
import { numberOption, textOption } from "@plinth/bench";
import { listed, writers } from "./content.ts";
import type { CallOperation, LoadClient, LoadCommand, LoadResult } from "./load-client.ts";
import type { MeasuredServer } from "./measured-process.ts";
import { token } from "./plinth-server.ts";

/** The figures of one round of a workload at one server. */
export interface Round {
	/** Processor time of the server per call or event, in microseconds. */
	readonly cost: number;
	/** Calls or events per second of wall time. */
	readonly rate: number;
}

export interface Workload {
	readonly name: string;
	/** Whether it counts events, not calls. */
	readonly isFanOut: boolean;
	run(client: LoadClient, server: MeasuredServer): Promise<Round>;
}

const callNames: Readonly<Record<CallOperation, string>> = {
	read: "Read",
	create: "Write, create",
	update: "Write, update",
	list: `List of ${listed.toLocaleString("en-US")}`,
	snapshot: `Watch snapshot of ${listed.toLocaleString("en-US")}`,
};
const callOperations: readonly CallOperation[] = ["read", "create", "update", "list", "snapshot"];
const watchCounts = [1, 1_000];

/** A list or a snapshot costs as much as about fifty other calls. */
const callCount = numberOption("calls", 2_000, 80);
const manyResources: readonly CallOperation[] = ["list", "snapshot"];

/**
 * Those of `--only=read,fan-out` (parts of names), `--callers=1,16` and `--connections=1,4`. No caller has more than
 * one connection.
 *
 * @throws Error if there is none.
 */
export function chosenWorkloads(): readonly Workload[] {
	const only = (textOption("only") ?? "").toLowerCase().split(",");
	const isChosen = (name: string) => only.some((part) => name.toLowerCase().includes(part));
	const connectionCounts = numbersOption("connections", [1, 4]);
	const calls = callOperations
		.filter((operation) => isChosen(callNames[operation]))
		.flatMap((operation) =>
			numbersOption("callers", [1, 16, 64]).flatMap((callers) =>
				connectionCounts
					.filter((connections) => connections <= callers)
					.map((connections) => callWorkload(operation, callers, connections)),
			),
		);
	const fanOuts = watchCounts.flatMap((watches) =>
		connectionCounts
			.filter((connections) => connections <= watches)
			.map((connections) => fanOutWorkload(watches, connections)),
	);
	const chosen = [...calls, ...fanOuts.filter(({ name }) => isChosen(name))];
	if (chosen.length === 0) {
		throw new Error(`no workload matches --only=${textOption("only")}`);
	}
	return chosen;
}

function callWorkload(operation: CallOperation, callers: number, connections: number): Workload {
	const count = manyResources.includes(operation) ? Math.ceil(callCount / 50) : callCount;
	const load = { callers, connections, watches: 0, count: Math.max(count, callers) };
	return {
		name: `${callNames[operation]}; ${callers} on ${connections}`,
		isFanOut: false,
		run: (client, server) => measured(client, server, { operation, ...load }),
	};
}

function fanOutWorkload(watches: number, connections: number): Workload {
	const count = Math.max(Math.round(callCount / (writers * watches)), 2);
	const load = { callers: writers, connections, watches, count };
	return {
		name: `Watch fan-out; ${watches.toLocaleString("en-US")} on ${connections}`,
		isFanOut: true,
		async run(client, server) {
			await client.run(commandTo(server, { operation: "openWatches", ...load }));
			const round = await measured(client, server, { operation: "fanOut", ...load });
			await client.run(commandTo(server, { operation: "closeWatches", ...load }));
			return round;
		},
	};
}

type Load = Omit<LoadCommand, "address" | "token">;

export function commandTo(server: MeasuredServer, load: Load): LoadCommand {
	return { ...load, address: new URL(server.address).host, token };
}

async function measured(client: LoadClient, server: MeasuredServer, load: Load): Promise<Round> {
	const before = server.cpuMicroseconds();
	const result: LoadResult = await client.run(commandTo(server, load));
	const used = server.cpuMicroseconds() - before;
	return { cost: used / result.count, rate: result.count / result.seconds };
}

function numbersOption(name: string, defaults: readonly number[]): readonly number[] {
	const text = textOption(name);
	const numbers = text?.split(",").map(Number) ?? defaults;
	if (!numbers.every((each) => Number.isInteger(each) && each > 0)) {
		throw new Error(`--${name} must be whole numbers above 0, such as 1,16, got: "${text}"`);
	}
	return numbers;
}
