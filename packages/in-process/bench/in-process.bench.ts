import { create } from "@bufbuild/protobuf";
import {
	type Client,
	type ConnectRouter,
	createClient,
	createRouterTransport,
} from "@connectrpc/connect";
import {
	ComparisonTable,
	interleave,
	nanosecondsPer,
	otherCheckout,
	unlessQuick,
} from "@plinth/bench";
import { createInProcessClient, createInProcessTransport } from "@plinth/in-process";
import { PingSchema, PongSchema, ProbeService } from "../testdata/src/gen/probe_pb.ts";

/*
 * What a call costs, in one run: through the library's own router transport, and by reference, with
 * the library's client and with this package's. With `--against=<checkout>`, also by reference with the code of another
 * checkout.
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
	/** How many times as fast as the router transport it is meant to be. */
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

const transport = createInProcessTransport(routes);
const routerClient = createClient(ProbeService, createRouterTransport(routes));
const libraryClient = createClient(ProbeService, transport);
const ownClient = createInProcessClient(ProbeService, transport);

const otherPath = otherCheckout("packages/in-process/src/index.ts");
const other: typeof import("@plinth/in-process") | undefined =
	otherPath === undefined ? undefined : await import(otherPath);
const otherClient = other?.createInProcessClient(
	ProbeService,
	other.createInProcessTransport(routes),
);

const table = new ComparisonTable("Calls by transport", "µs");
for (const { name, work, counts, aim } of cases) {
	const round = (client: Client<typeof ProbeService>, full: number) => async () => {
		const count = unlessQuick(full, Math.ceil(full / 1_000));
		return (await nanosecondsPer(count, () => work(client, count))) / 1000;
	};
	const contenders = {
		"in-process, createInProcessClient": round(ownClient, counts.inProcess),
		...(otherClient && { "other checkout": round(otherClient, counts.inProcess) }),
		"in-process, createClient": round(libraryClient, counts.inProcess),
		"router transport": round(routerClient, counts.router),
	};
	const figures = await interleave(contenders, { rounds: unlessQuick(12, 2), warmUpRounds: 1 });
	table.add(name, figures, aim === undefined ? {} : { aim: `÷ router ≤ ${(1 / aim).toFixed(3)}` });
}
table.print();
