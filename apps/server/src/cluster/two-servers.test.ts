import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type DescMessage, type Message, toJson } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { ControllerService, ResourceService } from "@plinth/proto";
import {
	GetControllerResponseSchema,
	ListControllersResponseSchema,
	ListReconcilesResponseSchema,
	Phase,
	ReconcileState,
} from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import { idOf } from "@plinth/resource";
import { EtcdProcess } from "@plinth/storage-etcd/testing";
import { describeWith } from "@plinth/test-support";
import { expect, it, onTestFinished } from "vitest";
import { Artist, artist } from "../../testdata/music.ts";
import { tokensOf, transportWith } from "../callers.fixture.ts";
import { ServerProcess } from "../server-process.fixture.ts";

const moduleFile = fileURLToPath(
	new URL("../../testdata/modules/failing/module.ts", import.meta.url),
);
const patiently = { timeout: 300_000, interval: 50 };
const artists = ["bad-1", "bad-2", "bad-3", "good-1", "good-2"];

/** An access file with a token for an operator, one for a reader of artists, and one without rights. */
function accessFile(): string {
	const folder = mkdtempSync(join(tmpdir(), "plinth-access-"));
	onTestFinished(() => rmSync(folder, { recursive: true }));
	const file = join(folder, "access.yaml");
	const policies = [
		"policies:",
		'  everything: [{ operations: ["*"] }]',
		"  artists: [{ operations: [operator:read], type: music.v1.Artist }]",
		"  nothing: [{ operations: [operator:read], type: other.v1.Type }]",
	];
	const tokens = tokensOf({ operator: "everything", reader: "artists", stranger: "nothing" });
	writeFileSync(file, `${policies.join("\n")}\n${tokens}`);
	return file;
}

async function startServer(etcd: EtcdProcess, access: string) {
	const server = new ServerProcess(
		...["--storage=etcd", `--etcd-endpoints=${etcd.url}`, "--listen=127.0.0.1:0"],
		...[`--module=${moduleFile}`, `--access-file=${access}`],
	);
	const address = await server.listening();
	const as = (user: string) => {
		const transport = transportWith(address, `${user}-token`);
		return {
			controllers: createClient(ControllerService, transport),
			resources: createClient(ResourceService, transport),
		};
	};
	return { server, address, as, ...as("operator") };
}

type Started = Awaited<ReturnType<typeof startServer>>;

const ages = /^(inPhase|inState|dueIn|running|oldestWaiting)$/;

/** A message without its ages, as JSON. */
function withoutAges<Desc extends DescMessage>(schema: Desc, message: Message): unknown {
	const text = JSON.stringify(toJson(schema, message as never), (key, value: unknown) =>
		ages.test(key) && typeof value === "string" ? undefined : value,
	);
	return JSON.parse(text);
}

/** All that a server reports, for an operator. */
async function reportsOf({ controllers }: Started): Promise<unknown> {
	const id = (name: string) => ({ id: idOf(Artist, name) });
	const [list, ...others] = await Promise.all([
		controllers.listControllers({}),
		controllers.getController({ name: "singers" }),
		controllers.getController({ name: "bookers" }),
	]);
	const reconciles = await Promise.all(artists.map((name) => controllers.listReconciles(id(name))));
	return [
		withoutAges(ListControllersResponseSchema, list),
		...others.map((each) => withoutAges(GetControllerResponseSchema, each)),
		...reconciles.map((each) => withoutAges(ListReconcilesResponseSchema, each)),
	];
}

async function serversOf({ controllers }: Started): Promise<readonly (readonly string[])[]> {
	const { servers } = await controllers.listControllers({});
	return servers.map(({ address, missing }) => [address, missing]);
}

describeWith("etcd")("the reports of two servers on one etcd", () => {
	/** Two servers with artists, each of which has been reconciled by both controllers. */
	async function startTwo(): Promise<readonly [Started, Started]> {
		const etcd = await EtcdProcess.start();
		onTestFinished(() => etcd.dispose());
		const access = accessFile();
		const one = await startServer(etcd, access);
		const other = await startServer(etcd, access);
		const expected = [one.address, other.address].sort();
		for (const each of [one, other]) {
			const addresses = async () => (await serversOf(each)).map(([address]) => address).sort();
			await expect.poll(addresses, patiently).toEqual(expected);
		}
		const shards = async () => {
			const { controller } = await one.controllers.getController({ name: "bookers" });
			return controller?.servers.map(({ shards }) => shards?.open.length);
		};
		await expect.poll(shards, patiently).toEqual([8, 8]);
		for (const name of artists) {
			await one.resources.write({ resource: artist(name) });
		}
		for (const name of ["singers", "bookers"]) {
			const counts = async () => {
				const { controller } = await other.controllers.getController({ name });
				return [controller?.requests?.failing, Number(controller?.reconciles?.succeeded) >= 2];
			};
			await expect.poll(counts, patiently).toEqual([3, true]);
		}
		return [one, other];
	}

	it("are the same whichever server is called, and say where each controller runs", async () => {
		const [one, other] = await startTwo();
		await expect
			.poll(async () => {
				const [a, b] = [await reportsOf(one), await reportsOf(other)];
				return JSON.stringify(a) === JSON.stringify(b);
			}, patiently)
			.toBe(true);

		const { controllers, servers, holdsLease } = await other.controllers.listControllers({});
		const names = servers.map(({ name }) => name);
		expect(holdsLease).toBe(true);
		expect(servers.filter((each) => each.holdsLease)).toHaveLength(1);
		expect(servers.map(({ missing }) => missing)).toEqual(["", ""]);
		for (const { servers: on } of controllers) {
			expect(on.map(({ server }) => server)).toEqual(names);
		}
		const [singers, bookers] = ["singers", "bookers"].map((name) =>
			controllers.find((each) => each.name === name),
		);
		expect(singers?.phase).toBe(Phase.RUNNING);
		expect(singers?.servers.map(({ phase }) => phase).sort()).toEqual([
			Phase.WAITING_FOR_LEASE,
			Phase.RUNNING,
		]);
		expect(bookers).toMatchObject({
			phase: Phase.RUNNING,
			requests: { failing: 3 },
			shards: { open: Array.from({ length: 16 }, (_, shard) => shard), count: 16 },
			servers: [{ shards: { count: 16 } }, { shards: { count: 16 } }],
		});
		const { failing } = await one.controllers.getController({ name: "bookers" });
		expect(failing.map(({ key }) => key.split("/").at(-1)).sort()).toEqual(artists.slice(0, 3));
		expect(failing.every(({ server }) => names.includes(server))).toBe(true);

		const holder = servers.find((each) => each.holdsLease)?.name;
		for (const { controllers: client } of [one, other]) {
			const { reconciles } = await client.listReconciles({ id: idOf(Artist, "bad-1") });
			expect(reconciles).toMatchObject([
				{ controller: "singers", state: ReconcileState.DELAYED, server: holder },
				{ controller: "bookers", state: ReconcileState.DELAYED, server: expect.any(String) },
			]);
			const own = await client.listControllers({ thisServerOnly: true });
			expect(own.servers).toHaveLength(1);
		}
	});

	it("name a server that hangs, and one that was killed until its lease ends", async () => {
		const [one, other] = await startTwo();
		other.server.kill("SIGSTOP");
		const [list, { reconciles, servers }] = await Promise.all([
			one.controllers.listControllers({}),
			one.controllers.listReconciles({ id: idOf(Artist, "bad-1") }),
		]);
		const missing = new Map(list.servers.map((each) => [each.address, each.missing]));
		expect(missing.get(one.address)).toBe("");
		expect(missing.get(other.address)).toBe("did not respond in time");
		expect(servers.map((each) => each.missing)).toEqual(list.servers.map((each) => each.missing));
		expect(reconciles.map(({ controller }) => controller)).toEqual(["singers", "bookers"]);
		other.server.kill("SIGKILL");
		await other.server.ended;
		await expect.poll(() => serversOf(one), patiently).toEqual([[one.address, ""]]);
	});

	it("are refused as by one server alone, and each server checks the caller's rights", async () => {
		const [one, other] = await startTwo();
		const id = { id: idOf(Artist, "bad-1") };
		for (const each of [one, other]) {
			const { controllers: stranger } = each.as("stranger");
			const { controllers: reader } = each.as("reader");
			const { controllers: unknown } = each.as("unknown");
			const refusals = await Promise.all([
				stranger.listControllers({}).catch(ConnectError.from),
				stranger.listReconciles(id).catch(ConnectError.from),
				reader.getController({ name: "bookers" }).catch(ConnectError.from),
				unknown.listControllers({}).catch(ConnectError.from),
			]);
			expect(refusals.map((error) => "code" in error && error.code)).toEqual([
				Code.PermissionDenied,
				Code.PermissionDenied,
				Code.PermissionDenied,
				Code.Unauthenticated,
			]);
			expect(JSON.stringify(refusals)).not.toContain(String(new URL(one.address).port));
			const { reconciles, servers } = await reader.listReconciles(id);
			expect(reconciles).toHaveLength(2);
			expect(servers.map(({ missing }) => missing)).toEqual(["", ""]);
		}
		// A server that stops is gone at once.
		other.server.kill("SIGTERM");
		await other.server.ended;
		expect(await serversOf(one)).toEqual([[one.address, ""]]);
	});
});
