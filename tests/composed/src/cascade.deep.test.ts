import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { Workload, WorkloadSchema } from "@plinth/example-catalog";
import { type ID, NamespaceSchema, ResourceService } from "@plinth/proto";
import {
	finalizersKey,
	idOf,
	Namespace,
	type ResourceType,
	resourceOf,
	type TenancyLike,
	Tombstone,
} from "@plinth/resource";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "../../..");

type ResourceClient = Client<typeof ResourceService>;

/** A real server in a separate process, with a file as its storage. */
class ServerProcess {
	readonly #dataDir = mkdtempSync(join(tmpdir(), "plinth-cascade-"));
	#child: ChildProcess | undefined;
	#log = "";

	async start(): Promise<ResourceClient> {
		const child = spawn(
			process.execPath,
			[
				join(root, "apps/server/src/main.ts"),
				...["--listen", "127.0.0.1:0", "--data-dir", this.#dataDir],
				...["--module", join(root, "examples/catalog/src/module.ts")],
			],
			{ stdio: ["ignore", "pipe", "pipe"] },
		);
		this.#child = child;
		child.stderr.on("data", (text) => {
			this.#log = (this.#log + String(text)).slice(-100_000);
		});
		let output = "";
		for await (const text of child.stdout) {
			output += String(text);
			const baseUrl = /http:\/\/\S+/.exec(output)?.[0];
			if (baseUrl !== undefined && output.includes("Try next")) {
				return createClient(ResourceService, createGrpcTransport({ baseUrl }));
			}
		}
		throw new Error(`the server did not start: ${this.#log}`);
	}

	async kill(): Promise<void> {
		if (this.#child?.exitCode === null && this.#child.signalCode === null) {
			this.#child.kill("SIGKILL");
			await once(this.#child, "exit");
		}
	}

	remove(): void {
		rmSync(this.#dataDir, { recursive: true, force: true });
	}
}

describe("a real server, killed and restarted in the middle", () => {
	let server: ServerProcess;
	let client: ResourceClient;
	beforeEach(async () => {
		server = new ServerProcess();
		client = await server.start();
	});
	afterEach(async () => {
		await server.kill();
		server.remove();
	});

	async function write(
		name: string,
		options: { owner?: ID; tenancy?: TenancyLike; finalizers?: string } = {},
	): Promise<ID> {
		const { resource } = await client.write({
			resource: resourceOf(Workload, {
				id: idOf(Workload, name, options.tenancy),
				data: create(WorkloadSchema, { host: "127.0.0.1", ports: { http: 80 } }),
				...(options.owner && { owner: options.owner }),
				...(options.finalizers && { metadata: { [finalizersKey]: options.finalizers } }),
			}),
		});
		if (resource?.id === undefined) {
			throw new Error("the response to the write lacks the resource");
		}
		return resource.id;
	}

	async function names(type: ResourceType, namePrefix = "", tenancy: TenancyLike = everywhere) {
		const found: string[] = [];
		let pageToken = "";
		do {
			const page = await client.list({
				type: type.type,
				tenancy,
				namePrefix,
				pageSize: 1000,
				pageToken,
			});
			found.push(...page.resources.map(({ id }) => id?.name ?? ""));
			pageToken = page.nextPageToken;
		} while (pageToken !== "");
		return found;
	}

	/** Resolves when that many of the owned workloads have been deleted. */
	async function deletions(count: number): Promise<void> {
		const { version } = await client.list({
			type: Workload.type,
			tenancy: everywhere,
			pageSize: 1,
		});
		const events = client.watchList({
			type: Workload.type,
			namePrefix: "owned-",
			afterVersion: version,
		});
		let seen = 0;
		for await (const { event } of events) {
			seen += event.case === "delete" ? 1 : 0;
			if (seen === count) {
				return;
			}
		}
	}

	async function until(condition: () => Promise<boolean>, limitMs = 300_000): Promise<void> {
		const endMs = Date.now() + limitMs;
		while (!(await condition())) {
			expect(Date.now(), "it did not happen in time").toBeLessThan(endMs);
			await new Promise((resolve) => setTimeout(resolve, 200));
		}
	}

	it("deletes an owner with all of its 1,000 resources in 3 levels, and nothing else", async () => {
		const owner = await write("owner");
		const others = Array.from({ length: 50 }, (_, n) => write(`other-${n}`));
		await Promise.all(others);
		const childIds: ID[] = [];
		for (let first = 0; first < 20; first += 1) {
			childIds.push(await write(`owned-${first}`, { owner }));
		}
		for (const [first, child] of childIds.entries()) {
			const grandchildren = Array.from({ length: 49 }, (_, second) =>
				write(`owned-${first}-${second}`, { owner: child }),
			);
			await Promise.all(grandchildren);
		}
		expect(await names(Workload, "owned-")).toHaveLength(1_000);

		const deleted = deletions(150);
		await client.delete({ id: owner });
		await deleted;
		await server.kill();
		client = await server.start();
		const afterRestart = (await names(Workload, "owned-")).length;
		expect(afterRestart, "killed too late to show anything").toBeGreaterThan(0);
		await until(async () => (await names(Workload, "owned-")).length === 0);
		expect(await names(Workload)).toHaveLength(50);
		await until(async () => (await names(Tombstone)).length === 0);
		expect(await names(Workload)).toHaveLength(50);
	});

	it("deletes a namespace with all its contents during concurrent writes", async () => {
		const namespace = idOf(Namespace, "loaded");
		await client.write({
			resource: resourceOf(Namespace, { id: namespace, data: create(NamespaceSchema) }),
		});
		const tenancy = { namespace: "loaded" };
		await write("held", { tenancy, finalizers: "test" });
		let stop = false;
		let written = 0;
		let refused = 0;
		const writer = async (number: number) => {
			for (let round = 0; !stop; round += 1) {
				try {
					const owner = await write(`w${number}-${round % 50}`, { tenancy });
					await write(`o${number}-${round}`, { tenancy, owner });
					written += 1;
				} catch (error) {
					expect(error).toBeInstanceOf(ConnectError);
					refused += 1;
					await new Promise((resolve) => setTimeout(resolve, 5));
				}
			}
		};
		const writers = [1, 2, 3, 4].map(writer);
		await until(async () => written > 100);
		await client.delete({ id: namespace });
		await until(async () => (await names(Workload, "", tenancy)).length === 1);
		await server.kill();
		client = await server.start();

		const { resource: held } = await client.read({ id: idOf(Workload, "held", tenancy) });
		expect(held).toBeDefined();
		if (held !== undefined) {
			await client.write({
				resource: { ...held, metadata: { ...held.metadata, [finalizersKey]: "" } },
			});
		}
		await until(async () => {
			try {
				await client.read({ id: namespace });
				return false;
			} catch (error) {
				return error instanceof ConnectError && error.code === Code.NotFound;
			}
		});
		stop = true;
		await Promise.all(writers);
		expect(refused).toBeGreaterThan(0);
		expect(await names(Workload, "", tenancy)).toEqual([]);
		expect(await names(Tombstone, "", tenancy)).toEqual([]);
	});
});

const everywhere: TenancyLike = { partition: "*", namespace: "*" };
