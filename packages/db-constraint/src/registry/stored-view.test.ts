import { create } from "@bufbuild/protobuf";
import type { Resource } from "@plinth/proto";
import {
	DeletedDeploymentSchema,
	DeploymentSchema,
} from "@plinth/proto/gen/plinth/meta/v1/meta_pb.js";
import { idOf, resourceOf } from "@plinth/resource";
import { silentLogger } from "@plinth/runtime";
import { type SeededRuntime, seededRuntime } from "@plinth/runtime/testing";
import { createMemoryBackend, decorateBackend, type StorageBackend } from "@plinth/storage";
import { describe, expect, it, onTestFinished } from "vitest";
import { ResourceShadow, recordOf } from "../shadow/shadow-records.ts";
import { DeletedDeployment, Deployment, metaService } from "./meta-types.ts";
import { reportOf } from "./registry-report.ts";
import { RegistryView } from "./registry-view.ts";
import { RunningServers } from "./running-servers.ts";
import { StoredView, storedServers } from "./stored-view.ts";

/** One storage, whose commits and lists are counted. */
class Storage {
	readonly runtime: SeededRuntime = seededRuntime({ seed: 1 });
	readonly backend: StorageBackend;
	commits = 0;
	lists = 0;

	constructor() {
		const backend = createMemoryBackend({ runtime: this.runtime });
		this.backend = decorateBackend(backend, {
			commit: (...args) => {
				this.commits += 1;
				return backend.commit(...args);
			},
			list: (...args) => {
				this.lists += 1;
				return backend.list(...args);
			},
		});
	}

	/** The names and versions of the Deployments that are stored, by their sources. */
	async stored(): Promise<readonly string[]> {
		const query = { tenancy: { partition: "", namespace: "" }, namePrefix: "registry" };
		const { resources } = await this.backend.list({ type: ResourceShadow.type, ...query });
		return resources
			.flatMap((each) => {
				const { record } = recordOf(each);
				if (record.case === "registry") {
					return `as of ${Number(record.value.asOf?.seconds)} s`;
				}
				if (record.case !== "registryEntry") {
					return [];
				}
				const { source, resource, endpoints } = record.value;
				return [source, resource?.id?.name, resource?.version, ...endpoints].join(" ");
			})
			.sort();
	}

	pass(ms: number): Promise<void> {
		return this.runtime.scheduler.advance(ms);
	}
}

/** A server of the deployment, which follows some servers of meta deployments. */
class Server {
	readonly view = new RegistryView();
	readonly running = new RunningServers();
	readonly #stored: StoredView;
	followed: readonly string[] = [];
	upToDateMs: number | undefined;

	constructor({ backend, runtime }: Storage) {
		const end = new AbortController();
		onTestFinished(() => end.abort());
		this.#stored = new StoredView({
			...{ backend, runtime, view: this.view, running: this.running, logger: silentLogger },
			upToDateMs: () => this.upToDateMs,
			followed: () => ({
				addresses: new Set(this.followed),
				areAll: this.followed.length > 0,
			}),
		});
		void this.#stored.run(end.signal);
	}

	/** What it would report to a meta deployment: the names and generations of Deployments, deletions, and the known uids. */
	async report(source: string): Promise<Readonly<Record<string, readonly string[]>>> {
		const known = await this.#stored.withStored([source]);
		const { deployments, deleted, knownUids } = reportOf(known, [{ address: source }], []);
		return {
			deployments: deployments.map(({ id, generation }) => `${id?.name} ${generation}`).sort(),
			deleted: deleted.map(({ id }) => id?.name ?? "").sort(),
			knownUids: [...knownUids].sort(),
		};
	}

	/** Reads this of a server of a meta deployment, or tells of another change. */
	read(source: string, ...resources: readonly Resource[]): void {
		for (const resource of resources) {
			this.view.apply(source, resource, "stored");
		}
		this.#stored.changed();
	}

	/** Reads what is stored of other deployments, as a server follows it. */
	async follow({ backend }: Storage): Promise<void> {
		const query = { tenancy: { partition: "", namespace: "" }, namePrefix: "registry-" };
		const { resources } = await backend.list({ type: ResourceShadow.type, ...query });
		for (const { record } of resources.map(recordOf)) {
			const uid = record.case === "registryEntry" ? (record.value.resource?.id?.uid ?? "") : "";
			if (
				record.case === "registryEntry" &&
				this.running.takeStored(uid, storedServers(record.value))
			) {
				this.#stored.replaced();
			}
		}
	}

	learn(uid: string, version: string, ...addresses: readonly string[]): void {
		this.running.learn(uid, { addresses, version });
		this.#stored.changed();
	}
}

function deployment(name: string, version: string): Resource {
	const id = { ...idOf(Deployment, name), uid: `uid-${name}` };
	const resource = resourceOf(Deployment, { id, data: create(DeploymentSchema) });
	return { ...resource, version, generation: version };
}

/** The Deployment of the meta deployment itself, which identifies it. */
const meta: Resource = {
	...resourceOf(Deployment, {
		id: { ...idOf(Deployment, "meta"), uid: "uid-meta" },
		data: create(DeploymentSchema, { service: metaService, address: "meta-2" }),
	}),
	...{ version: "1", generation: "1" },
};

function deletion(name: string): Resource {
	const id = { ...idOf(DeletedDeployment, `uid-${name}`), uid: `uid-deletion-${name}` };
	const data = create(DeletedDeploymentSchema, { uid: `uid-${name}` });
	return { ...resourceOf(DeletedDeployment, { id, data }), version: "9" };
}

/** Two servers that follow a meta deployment, and have read this Deployment there. */
function serversThatKnow(storage: Storage, known: Resource): readonly [Server, Server] {
	const servers = [new Server(storage), new Server(storage)] as const;
	for (const server of servers) {
		server.followed = ["meta"];
		server.upToDateMs = 1_000;
		server.read("meta", known);
	}
	return servers;
}

describe("the registry view of a deployment with several servers", () => {
	it("gets the newest list of servers back that a server has written before another one wrote an older", async () => {
		const storage = new Storage();
		const [one, two] = serversThatKnow(storage, deployment("a", "1"));
		const settle = async () => {
			for (let round = 0; round < 4; round++) {
				await storage.pass(20_000);
				await one.follow(storage);
				await two.follow(storage);
			}
		};
		one.learn("uid-a", "5", "https://1");
		await settle();
		one.learn("uid-a", "9", "https://1");
		await settle();
		two.learn("uid-a", "7", "https://1", "https://gone");
		await settle();
		expect(await storage.stored()).toContain("meta a 1 https://1");
		expect(two.running.of("uid-a").addresses).toEqual(["https://1"]);
		const { commits } = storage;
		await settle();
		expect(storage.commits).toBe(commits);
	});

	it("is not changed by a server that is cut off from what another one follows", async () => {
		const storage = new Storage();
		const stale = new Server(storage);
		stale.followed = ["meta"];
		stale.upToDateMs = 1_000;
		stale.read("meta", deployment("a", "1"), deployment("gone", "1"));
		await storage.pass(5_000);
		stale.followed = [];
		const current = new Server(storage);
		current.followed = ["meta"];
		current.upToDateMs = 9_000;
		current.read("meta", deployment("a", "2"), deployment("new", "1"), deployment("gone", "1"));
		current.view.apply("meta", deployment("gone", "1"), "removed");
		await storage.pass(5_000);
		const stored = ["as of 9 s", "meta a 2", "meta new 1"];
		expect(await storage.stored()).toEqual(stored);

		const { commits } = storage;
		for (let times = 0; times < 10; times++) {
			stale.read("meta");
			current.read("meta");
			await storage.pass(1_500);
		}
		expect(await storage.stored()).toEqual(stored);
		expect(storage.commits).toBe(commits);
	});

	it("has the same of two servers of a meta deployment, each followed by another server", async () => {
		const storage = new Storage();
		const [one, two] = [new Server(storage), new Server(storage)];
		one.followed = ["meta-1"];
		two.followed = ["meta-2"];
		for (const server of [one, two]) {
			server.upToDateMs = 1_000;
		}
		one.read("meta-1", deployment("a", "1"), deployment("b", "1"));
		await storage.pass(5_000);
		two.read("meta-2", deployment("a", "1"), deployment("b", "1"));
		await storage.pass(5_000);
		const { commits } = storage;
		for (let times = 0; times < 10; times++) {
			one.read("meta-1");
			two.read("meta-2");
			await storage.pass(1_500);
		}
		const stored = ["meta-1 a 1", "meta-1 b 1", "meta-2 a 1", "meta-2 b 1"];
		expect(await storage.stored()).toEqual(["as of 1 s", ...stored]);
		expect(storage.commits).toBe(commits);

		one.view.apply("meta-1", deployment("a", "1"), "removed");
		one.read("meta-1");
		await storage.pass(5_000);
		expect(await storage.stored()).toEqual(["as of 1 s", "meta-1 b 1", "meta-2 b 1"]);
	});

	it("keeps what a server has stored that another one has never seen", async () => {
		const storage = new Storage();
		const [one, lagging] = serversThatKnow(storage, deployment("a", "1"));
		one.read("meta", deployment("new", "2"), deletion("deleted"));
		await storage.pass(5_000);
		lagging.read("meta", deployment("a", "3"));
		await storage.pass(5_000);
		const stored = ["meta a 3", "meta new 2", "meta uid-deleted 9"];
		expect(await storage.stored()).toEqual(["as of 1 s", ...stored]);

		// Also at a source that it does not follow any longer.
		lagging.followed = ["meta-2"];
		lagging.upToDateMs = 9_000;
		lagging.read("meta-2", deployment("a", "3"));
		await storage.pass(5_000);
		expect(await storage.stored()).toEqual(["as of 9 s", ...stored, "meta-2 a 3"].sort());

		lagging.read("meta-2", deletion("new"));
		lagging.followed = ["meta", "meta-2"];
		await storage.pass(5_000);
		expect(await storage.stored()).not.toContain("meta new 2");
	});

	it("keeps what was given back after a server has seen it removed", async () => {
		const storage = new Storage();
		const [one, lagging] = [new Server(storage), new Server(storage)];
		for (const server of [one, lagging]) {
			server.followed = ["meta"];
			server.upToDateMs = 1_000;
			server.read("meta", deployment("a", "1"), deployment("back", "1"));
			// The meta deployment was complete without it after a restore.
			server.view.retain("meta", "deployments", new Set(["uid-a"]));
		}
		await storage.pass(5_000);
		expect(await storage.stored()).toEqual(["as of 1 s", "meta a 1"]);
		one.read("meta", deployment("back", "2"));
		await storage.pass(5_000);
		lagging.read("meta", deployment("a", "3"));
		await storage.pass(5_000);
		expect(await storage.stored()).toEqual(["as of 1 s", "meta a 3", "meta back 2"]);
		lagging.read("meta", deployment("back", "2"));
		lagging.view.apply("meta", deployment("back", "2"), "removed");
		await storage.pass(5_000);
		expect(await storage.stored()).toEqual(["as of 1 s", "meta a 3"]);
	});

	it("is compared with the storage only after a change", async () => {
		const storage = new Storage();
		const server = new Server(storage);
		server.followed = ["meta"];
		server.upToDateMs = 1_000;
		server.read("meta", deployment("a", "1"));
		await storage.pass(5_000);
		const { lists } = storage;
		for (let times = 0; times < 10; times++) {
			server.read("meta", deployment("a", "1"));
			await storage.pass(1_500);
		}
		expect(storage.lists).toBe(lists);
		server.read("meta", deployment("a", "2"));
		await storage.pass(1_500);
		expect(await storage.stored()).toEqual(["as of 1 s", "meta a 2"]);
		server.upToDateMs = 200_000;
		server.read("meta");
		await storage.pass(1_500);
		expect(await storage.stored()).toEqual(["as of 200 s", "meta a 2"]);
	});

	it("has what was read right before its server was cut off", async () => {
		const storage = new Storage();
		const server = new Server(storage);
		server.followed = ["meta"];
		server.read("meta", deployment("a", "1"));
		server.followed = [];
		await storage.pass(5_000);
		expect(await storage.stored()).toEqual(["meta a 1"]);
	});

	it("is reported together with what this server has read", async () => {
		const storage = new Storage();
		const [one, two] = [new Server(storage), new Server(storage)];
		one.followed = ["meta", "removed meta"];
		const stored = ["a", "b", "deleted", "deleted here"].map((name) => deployment(name, "2"));
		one.read("meta", meta, ...stored, deletion("deleted"));
		one.read("removed meta", deployment("elsewhere", "1"));
		await storage.pass(5_000);
		two.read("meta-2", meta, deployment("a", "1"), deployment("b", "3"), deployment("c", "1"));
		two.read("meta-2", deployment("deleted", "3"), deletion("deleted here"));
		expect(await two.report("meta-2")).toEqual({
			deployments: ["a 2", "b 3", "c 1", "meta 1"],
			deleted: ["uid-deleted", "uid-deleted here"],
			knownUids: ["uid-a", "uid-b", "uid-c", "uid-meta"],
		});
		expect(two.view.deploymentsAt(["meta-2"])).toHaveLength(5);
	});

	it("has the addresses of the latest version, also without a meta deployment", async () => {
		const storage = new Storage();
		const [one, two] = serversThatKnow(storage, deployment("a", "1"));
		await storage.pass(5_000);
		for (const server of [one, two]) {
			server.followed = [];
		}
		one.learn("uid-a", "7", "https://1", "https://2");
		await storage.pass(5_000);
		expect(await storage.stored()).toContain("meta a 1 https://1 https://2");
		two.learn("uid-a", "6", "https://1");
		await storage.pass(5_000);
		expect(await storage.stored()).toContain("meta a 1 https://1 https://2");

		const { commits } = storage;
		for (let times = 0; times < 10; times++) {
			one.learn("uid-a", `${10 + times}`, "https://2", "https://1");
			two.learn("uid-a", "6", "https://1");
			await storage.pass(1_500);
		}
		expect(storage.commits).toBe(commits);
		two.learn("uid-a", "30", "https://1");
		await storage.pass(5_000);
		expect(await storage.stored()).toContain("meta a 1 https://1");
	});
});
