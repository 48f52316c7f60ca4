/*
 * The cost of a call for the server, in microseconds of processor time: the product with tokens, limits,
 * metrics and audit, next to an alternative that serves the same calls in the same run. The alternative is the resource
 * service behind Connect's own adapter, or the server of another checkout:
 *
 *   pnpm bench
 *   pnpm bench --against=../../../plinth-before
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { createRegistry } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { ComparisonTable, numberOption, textOption } from "@plinth/bench";
import { ResourceService } from "@plinth/proto";
import { idOf, typeOf } from "@plinth/resource";
import { tokenHash } from "@plinth/resource-service";
import { ArtistSchema } from "../testdata/gen/music/v1/music_pb.ts";
import { Artist, artist } from "../testdata/music.ts";
import { type MeasuredServer, startMeasured } from "./measured-server.ts";

const against = textOption("against");
const callsPerRound = numberOption("calls", 4_000, 80);
const callers = 16;
const listed = 100;

const here = fileURLToPath(new URL("..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "plinth-bench-"));
const token = "bench-token-that-is-long-enough";
const accessFile = join(folder, "access.yaml");
writeFileSync(
	accessFile,
	`policies: { all: [{ operations: ["*"] }] }\ntokens:\n  - { subject: bench, sha256: ${tokenHash(token)}, policies: [all] }\n`,
);

const product = (app: string) => [
	join(app, "src/main.ts"),
	...["--listen", "127.0.0.1:0", "--storage", "memory", "--log-level", "error"],
	...["--module", join(app, "testdata/modules/module.ts"), "--access-file", accessFile],
	...["--limits-calls-per-second", "1000000", "--limits-call-burst", "1000000"],
];
const alternative =
	against === undefined
		? { name: "Connect's adapter", args: [join(here, "bench/bare-server.ts")] }
		: { name: against, args: product(resolve(against, "apps/server")) };

const servers = [
	await startMeasured(product(here)),
	await startMeasured(alternative.args),
] as const;

const headers = { authorization: `Bearer ${token}` };
const name = (turn: number) => `r${turn % listed}`;
type Call = (client: Client<typeof ResourceService>, turn: number) => Promise<unknown>;
const calls: Readonly<Record<string, Call>> = {
	Write: (client, turn) => client.write({ resource: artist(name(turn)) }, { headers }),
	Read: (client, turn) => client.read({ id: idOf(Artist, name(turn)) }, { headers }),
	"List of 100": (client) => client.list({ type: typeOf(Artist.type), tenancy: {} }, { headers }),
};
const transports = {
	gRPC: (baseUrl: string) => createGrpcTransport({ baseUrl }),
	"Connect, JSON": (baseUrl: string) =>
		createConnectTransport({
			baseUrl,
			httpVersion: "2",
			useBinaryFormat: false,
			jsonOptions: { registry: createRegistry(ArtistSchema) },
		}),
} as const;

const table = new ComparisonTable(
	`processor time of the server per call; ${callers} callers on one connection`,
	"µs",
);
try {
	for (const [protocol, transportOf] of Object.entries(transports)) {
		for (const [method, call] of Object.entries(calls)) {
			const count = method.startsWith("List") ? Math.ceil(callsPerRound / 8) : callsPerRound;
			const round = (server: MeasuredServer) => {
				const client = createClient(ResourceService, transportOf(server.address));
				return () => costOf(server, count, (turn) => call(client, turn));
			};
			await table.measure(`${method}, ${protocol}`, {
				plinth: round(servers[0]),
				[alternative.name]: round(servers[1]),
			});
		}
	}
	table.print();
} finally {
	await Promise.all(servers.map((server) => server.stop()));
	rmSync(folder, { recursive: true });
}
process.exit(0);

async function costOf(
	server: MeasuredServer,
	count: number,
	run: (turn: number) => Promise<unknown>,
): Promise<number> {
	const before = server.cpuMicroseconds();
	let turn = 0;
	await Promise.all(
		Array.from({ length: callers }, async () => {
			while (turn < count) {
				turn += 1;
				await run(turn);
			}
		}),
	);
	return (server.cpuMicroseconds() - before) / turn;
}
