import { create } from "@bufbuild/protobuf";
import {
	type Client,
	type ConnectRouter,
	createClient,
	createRouterTransport,
} from "@connectrpc/connect";
import { createInProcessClient, createInProcessTransport } from "@plinth/in-process";
import { PingSchema, PongSchema, ProbeService } from "../testdata/src/gen/probe_pb.ts";

/*
 * What a call costs, in one run: through the library's own router transport, and by reference, with
 * the library's client and with this package's.
 * Usage: node bench/in-process.bench.ts
 */

const ping = create(PingSchema, { text: "ping", number: 1 });
const pong = create(PongSchema, { text: "pong", number: 2 });

/** Sums the numbers of the messages, so that none goes unread. */
type Work = (client: Client<typeof ProbeService>, count: number) => Promise<number>;

interface Case {
	readonly name: string;
	readonly work: Work;
	/** How many operations a round has: on the library's transport, and here. */
	readonly counts: { readonly router: number; readonly inProcess: number };
	readonly aim: number | undefined;
}

const cases: readonly Case[] = [
	{
		name: "unary call, empty handler",
		work: async (client, count) => {
			let sum = 0;
			for (let call = 0; call < count; call++) {
				sum += (await client.unary(ping)).number;
			}
			return sum;
		},
		counts: { router: 5_000, inProcess: 200_000 },
		aim: 15,
	},
	{
		name: "unary call, with headers, timeout and signal",
		work: async (client, count) => {
			let sum = 0;
			const options = {
				headers: { "x-user": "u" },
				timeoutMs: 60_000,
				signal: new AbortController().signal,
			};
			for (let call = 0; call < count; call++) {
				sum += (await client.unary(ping, options)).number;
			}
			return sum;
		},
		counts: { router: 5_000, inProcess: 100_000 },
		aim: undefined,
	},
	...[1, 10, 100, 1_000, 10_000].map((length) => ({
		name: `server stream of ${length.toLocaleString("en")}, a message`,
		work: async (client: Client<typeof ProbeService>, count: number) => {
			let sum = 0;
			for (let read = 0; read < count; read += length) {
				for await (const message of client.serverStream({ number: length })) {
					sum += message.number;
				}
			}
			return sum;
		},
		counts:
			length === 1 ? { router: 3_000, inProcess: 50_000 } : { router: 20_000, inProcess: 400_000 },
		aim: length === 1 ? undefined : 20,
	})),
];

function routes(router: ConnectRouter): void {
	router.service(ProbeService, {
		unary: () => pong,
		async *serverStream(request) {
			for (let sent = 0; sent < request.number; sent++) {
				yield pong;
			}
		},
	});
}

/** Nanoseconds an operation, in one round. */
async function round(client: Client<typeof ProbeService>, work: Work, count: number) {
	const before = process.hrtime.bigint();
	await work(client, count);
	return Number(process.hrtime.bigint() - before) / count;
}

const transport = createInProcessTransport(routes);
const routerClient = createClient(ProbeService, createRouterTransport(routes));
const libraryClient = createClient(ProbeService, transport);
const ownClient = createInProcessClient(ProbeService, transport);

const rows: Record<string, Record<string, string>> = {};
for (const { name, work, counts, aim } of cases) {
	// The rounds alternate, so that what else the machine does meets all; the best of each counts.
	let router = Number.POSITIVE_INFINITY;
	let library = Number.POSITIVE_INFINITY;
	let own = Number.POSITIVE_INFINITY;
	for (let rounds = 0; rounds < 12; rounds++) {
		router = Math.min(router, await round(routerClient, work, counts.router));
		library = Math.min(library, await round(libraryClient, work, counts.inProcess));
		own = Math.min(own, await round(ownClient, work, counts.inProcess));
	}
	rows[name] = {
		"router transport": microseconds(router),
		"in-process, createClient": microseconds(library),
		"times as fast": (router / library).toFixed(1),
		"in-process, createInProcessClient": microseconds(own),
		"per second": Math.round(1e9 / own).toLocaleString("en"),
		"times as fast ": (router / own).toFixed(1),
		aim: aim === undefined ? "" : `≥ ${aim}`,
	};
}
console.table(rows);

function microseconds(nanoseconds: number): string {
	return `${(nanoseconds / 1000).toFixed(2)} µs`;
}
