import { create } from "@bufbuild/protobuf";
import { Code, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { NamespaceSchema, ResourceService } from "@plinth/proto";
import { idOf, Namespace, resourceOf } from "@plinth/resource";
import { tokenHash } from "@plinth/resource-service";
import { EtcdProcess } from "@plinth/storage-etcd/testing";
import { itWith, seconds } from "@plinth/test-support";
import { expect, onTestFinished } from "vitest";
import { JukeboxService } from "../testdata/gen/music/v1/music_pb.ts";
import { attack } from "./attackers.fixture.ts";
import { filesOf } from "./certificates.fixture.ts";
import { heapModuleFile } from "./load.fixture.ts";
import { RegularLoad } from "./regular-load.fixture.ts";
import { ServerProcess } from "./server-process.fixture.ts";

/** How long the attacks last. */
const attackSeconds = seconds(30);

/** What the heap and all buffers may take after a collection, with the limits of this test: see docs/operating.md. */
const memoryLimitBytes = 1_280 * 1024 ** 2;

/** How many times longer than where another server is attacked calls of others may take. */
const slowdown = 10;

const holdsLease = /acquired the lease of singleton controllers/;

const policies = `policies:
  all: [{ operations: ["*"] }]
  own: [{ operations: ["*"], namespace: mallory }]
  none: []
`;
const tokens = { regular: "all", admin: "all", mallory: "own", powerless: "none" };

function accessFile(): string {
	const entries = Object.entries(tokens).map(
		([subject, policy]) =>
			`  - { subject: ${subject}, sha256: ${tokenHash(subject)}, policies: [${policy}] }\n`,
	);
	return filesOf({ access: `${policies}tokens:\n${entries.join("")}` }).access;
}

const megabytes = (bytes: number) => Math.round(bytes / 1024 ** 2);

for (const http2 of ["node", "plinth"]) {
	itWith("etcd")(
		`all attacks at once leave writes kept, others served, memory bounded and the lease held, with --http2 ${http2}`,
		() => attackAll(http2),
	);
}

async function attackAll(http2: string): Promise<void> {
	const etcd = await EtcdProcess.start();
	onTestFinished(() => etcd.dispose());
	const access = accessFile();
	const start = (prefix: string) =>
		new ServerProcess(
			...["--listen", "127.0.0.1:0", "--storage", "etcd", "--etcd-endpoints", etcd.url],
			...["--etcd-prefix", prefix, "--module", heapModuleFile, "--log-level", "warn"],
			...["--memory-limit", "256MiB", "--access-file", access, "--http2", http2],
		);
	// One server is under attack; another stands by for its lease; and a third one, of its own, is attacked for comparison.
	const attacked = start("/attacked");
	const address = await attacked.listening();
	const standby = start("/attacked");
	await standby.listening();
	const other = start("/other");
	const otherAddress = await other.listening();

	const headers = { authorization: "Bearer admin" };
	for (const baseUrl of [address, otherAddress]) {
		const client = createClient(ResourceService, createGrpcTransport({ baseUrl }));
		for (const namespace of ["regular", "mallory"]) {
			await client.write(
				{
					resource: resourceOf(Namespace, {
						id: idOf(Namespace, namespace),
						data: create(NamespaceSchema),
					}),
				},
				{ headers },
			);
		}
	}
	const memoryOf = async (kind: string) => {
		const text = await (await fetch(`${address}/metrics`, { headers })).text();
		const found = new RegExp(
			`^plinth_process_memory_bytes\\{[^}]*kind="${kind}"[^}]*\\} (\\S+)`,
			"m",
		);
		return Number(found.exec(text)?.[1] ?? Number.NaN);
	};
	/** Heap and buffers after a collection. */
	const memory = async () => {
		const transport = createGrpcTransport({ baseUrl: address });
		const { song } = await createClient(JukeboxService, transport).play({}, { headers });
		return Number(song) + (await memoryOf("external"));
	};

	const mallory = { token: "mallory", namespace: "mallory", powerless: "powerless" };
	const load = new RegularLoad(address, "regular");
	load.watch();
	const compared = await load.run(
		attack({ address: otherAddress, ...mallory, seconds: Math.min(attackSeconds, 120) }),
	);
	process.stdout.write(`another server attacked: ${JSON.stringify(compared)}\n`);
	const memories: number[] = [];
	const residents: number[] = [];
	const attacking = attack({ address, ...mallory, seconds: attackSeconds });
	const sampling = setInterval(() => {
		memory().then(
			(bytes) => memories.push(bytes),
			() => {},
		);
		memoryOf("rss").then(
			(bytes) => residents.push(bytes),
			() => {},
		);
	}, 5_000);
	const figures = await load.run(attacking);
	clearInterval(sampling);
	const outcome = await attacking;
	memories.push(await memory());
	residents.push(await memoryOf("rss"));
	process.stdout.write(`this server attacked: ${JSON.stringify(figures)}\n`);
	process.stdout.write(`what came of the attacks: ${JSON.stringify(outcome, null, 1)}\n`);
	process.stdout.write(
		`heap and buffers after collections, MiB: peak ${megabytes(Math.max(...memories))}, at the end ${megabytes(memories.at(-1) ?? 0)}; resident: peak ${megabytes(Math.max(...residents))}\n`,
	);
	process.stdout.write(
		`acknowledged writes ${load.acknowledged}; watch restarts ${load.watchRestarts}\n`,
	);

	// A server that is short of processor time may refuse, or not confirm in time; nothing else may fail.
	const retryable = [Code.ResourceExhausted, Code.Unavailable].map((code) => `${code} `);
	expect(
		Object.keys(figures.failures).filter(
			(each) => !retryable.some((code) => each.startsWith(code)),
		),
	).toEqual([]);
	expect(await load.problems()).toEqual([]);
	await load.close();
	expect(memories.length).toBeGreaterThan(1);
	expect(Math.max(...memories)).toBeLessThan(memoryLimitBytes);
	expect(figures.readP99Ms).toBeLessThan(slowdown * compared.readP99Ms);
	expect(figures.writeP99Ms).toBeLessThan(slowdown * compared.writeP99Ms);
	expect(standby.stderr).not.toMatch(holdsLease);
	const metrics = await (await fetch(`${address}/metrics`, { headers })).text();
	expect(metrics).toMatch(/plinth_lease_held\{[^}]*\} 1\n/);
	expect(Object.keys(outcome.foreignOrigin ?? {}).filter((each) => each !== "status 403")).toEqual(
		[],
	);
	expect(outcome.manyFields).not.toHaveProperty("binary 200");
}
