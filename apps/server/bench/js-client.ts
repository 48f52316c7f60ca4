/*
 * The load generator if there is no Go, and for Connect's JSON: reads commands from standard input, and writes a result
 * for each (harness/load-client.ts).
 */
import { createInterface } from "node:readline";
import { create, createRegistry } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { quantile } from "@plinth/bench";
import { ResourceService, type WatchEvent } from "@plinth/proto";
import { idOf, resourceOf, typeOf } from "@plinth/resource";
import { ArtistSchema } from "../testdata/gen/music/v1/music_pb.ts";
import { Artist } from "../testdata/music.ts";
import {
	createdNamespace,
	headers,
	listed,
	tenancyIn,
	watchedNamespace,
	writers,
} from "./harness/content.ts";
import type { CallOperation, LoadCommand, LoadResult, Protocol } from "./harness/load-client.ts";

type ResourceClient = Client<typeof ResourceService>;

const protocol: Protocol = process.argv[2] === "gRPC" ? "gRPC" : "Connect, JSON";
const type = typeOf(Artist.type);
const clients = new Map<string, readonly ResourceClient[]>();

function transportTo(baseUrl: string) {
	return protocol === "gRPC"
		? createGrpcTransport({ baseUrl })
		: createConnectTransport({
				baseUrl,
				httpVersion: "2",
				useBinaryFormat: false,
				jsonOptions: { registry: createRegistry(ArtistSchema) },
			});
}

/** One client a connection. */
function clientsOf({ address, connections }: LoadCommand): readonly ResourceClient[] {
	const key = `${address} ${connections}`;
	const found =
		clients.get(key) ??
		Array.from({ length: connections }, () =>
			createClient(ResourceService, transportTo(`http://${address}`)),
		);
	clients.set(key, found);
	return found;
}

/** All calls are numbered, so that names of created resources are never used twice. */
let turns = 0;

function write(client: ResourceClient, namespace: string, name: string, createOnly: boolean) {
	const resource = resourceOf(Artist, {
		id: idOf(Artist, name, tenancyIn(namespace)),
		data: create(ArtistSchema, { genre: `jazz ${turns}` }),
	});
	return client.write({ resource, createOnly }, { headers });
}

const calls: Readonly<
	Record<CallOperation, (client: ResourceClient, turn: number) => Promise<unknown>>
> = {
	read: (client, turn) => client.read({ id: idOf(Artist, `r${turn % listed}`) }, { headers }),
	create: (client, turn) => write(client, createdNamespace, `c${turn}`, true),
	update: (client, turn) => write(client, "default", `r${turn % listed}`, false),
	list: (client) => client.list({ type, tenancy: tenancyIn("default") }, { headers }),
	snapshot: async (client) => {
		const ended = new AbortController();
		await openWatch(client, "default", listed, ended.signal);
		ended.abort();
	},
};

/** Resolves after the end of the snapshot with the events that follow. */
async function openWatch(
	client: ResourceClient,
	namespace: string,
	size: number,
	signal: AbortSignal,
): Promise<AsyncIterator<WatchEvent>> {
	const request = { type, tenancy: tenancyIn(namespace) };
	const events = client.watchList(request, { headers, signal })[Symbol.asyncIterator]();
	for (let upserts = 0; ; upserts++) {
		const { value, done } = await events.next();
		if (done) {
			throw new Error("the watch has ended");
		}
		if (value.event.case === "endOfSnapshot") {
			if (upserts !== size) {
				throw new Error(`the snapshot has ${upserts} resources instead of ${size}`);
			}
			return events;
		}
	}
}

async function repeat(operation: CallOperation, command: LoadCommand): Promise<number> {
	const targets = clientsOf(command);
	let left = command.count;
	await Promise.all(
		Array.from({ length: command.callers }, async (_, caller) => {
			const client = targets[caller % targets.length];
			while (client !== undefined && left > 0) {
				left -= 1;
				turns += 1;
				await calls[operation](client, turns);
			}
		}),
	);
	return command.count;
}

/** Starts calls at a fixed rate. Between two of them, the loop serves those that are running. */
async function runPaced(command: LoadCommand, perSecond: number): Promise<LoadResult> {
	const targets = clientsOf(command);
	const call = calls[operationOf(command)];
	const latencies: number[] = [];
	const running: Promise<void>[] = [];
	const startMs = performance.now();
	for (let index = 0; index < command.count; index++) {
		const dueMs = startMs + (index * 1_000) / perSecond;
		while (performance.now() < dueMs) {
			await new Promise((resolve) => setImmediate(resolve));
		}
		turns += 1;
		const client = targets[index % targets.length];
		if (client !== undefined) {
			const done = () => void latencies.push((performance.now() - dueMs) * 1_000);
			running.push(call(client, turns).then(done));
		}
	}
	await Promise.all(running);
	return {
		count: command.count,
		seconds: (performance.now() - startMs) / 1_000,
		p50Microseconds: quantile(latencies, 0.5),
		p99Microseconds: quantile(latencies, 0.99),
	};
}

/** The watches that are open, and the events that they have still to receive. */
const open = {
	count: 0,
	ended: new AbortController(),
	awaited: 0,
	complete: Promise.withResolvers<void>(),
};

async function openWatches(command: LoadCommand): Promise<number> {
	const targets = clientsOf(command);
	for (let index = 0; index < command.watches; index++) {
		const client = targets[index % targets.length];
		if (client !== undefined) {
			void follow(
				await openWatch(client, watchedNamespace, writers, open.ended.signal),
				open.ended.signal,
			);
		}
	}
	open.count += command.watches;
	return command.watches;
}

function closeWatches(): number {
	const { count } = open;
	open.ended.abort();
	open.ended = new AbortController();
	open.count = 0;
	return count;
}

async function follow(events: AsyncIterator<WatchEvent>, signal: AbortSignal): Promise<void> {
	try {
		for (;;) {
			const { value, done } = await events.next();
			if (done) {
				throw new Error("a watch has ended");
			}
			if (value.event.case === "upsert") {
				open.awaited -= 1;
				if (open.awaited === 0) {
					open.complete.resolve();
				}
			}
		}
	} catch (failure) {
		if (!signal.aborted) {
			open.complete.reject(failure);
		}
	}
}

async function fanOut(command: LoadCommand): Promise<number> {
	const targets = clientsOf(command);
	for (let round = 0; round < command.count; round++) {
		open.awaited = writers * open.count;
		open.complete = Promise.withResolvers();
		const updates = Array.from({ length: writers }, (_, writer) => {
			const client = targets[writer % targets.length];
			turns += 1;
			return client && write(client, watchedNamespace, `w${writer}`, false);
		});
		await Promise.all([...updates, open.complete.promise]);
	}
	return command.count * writers * open.count;
}

function operationOf({ operation }: LoadCommand): CallOperation {
	if (operation === "openWatches" || operation === "closeWatches" || operation === "fanOut") {
		throw new Error(`${operation} can't be repeated at a rate`);
	}
	return operation;
}

async function execute(command: LoadCommand): Promise<number> {
	switch (command.operation) {
		case "openWatches":
			return openWatches(command);
		case "closeWatches":
			return closeWatches();
		case "fanOut":
			return fanOut(command);
		default:
			return repeat(command.operation, command);
	}
}

for await (const line of createInterface({ input: process.stdin })) {
	const startMs = performance.now();
	let result: LoadResult | { readonly error: string };
	try {
		const command: LoadCommand = JSON.parse(line);
		result =
			command.perSecond === undefined
				? { count: await execute(command), seconds: (performance.now() - startMs) / 1_000 }
				: await runPaced(command, command.perSecond);
	} catch (failure) {
		result = { error: String(failure) };
	}
	process.stdout.write(`${JSON.stringify(result)}\n`);
}
process.exit(0);
