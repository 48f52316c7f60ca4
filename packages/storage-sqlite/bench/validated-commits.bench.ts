// Durable writes a second of 64 writers through the resource service and its in-process client, with
// all validation, against one transaction per commit: through the same service and client, and of the same
// rows without either. On the same disk, and in turns, so that what else the machine does hits all.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, toBinary } from "@bufbuild/protobuf";
import { ComparisonTable, type Load, numberOption, runCallers, unlessQuick } from "@plinth/bench";
import { createInProcessClient, createInProcessTransport } from "@plinth/in-process";
import { NamespaceSchema, type Resource, ResourceSchema, ResourceService } from "@plinth/proto";
import {
	idOf,
	Namespace,
	nameKey,
	Partition,
	resourceOf,
	Tombstone,
	TypeRegistry,
} from "@plinth/resource";
import {
	createResourceService,
	ensureDefaultTenancy,
	insecureAllowAll,
} from "@plinth/resource-service";
import { artist, demoTypes } from "@plinth/resource-service/testing";
import { systemRuntime } from "@plinth/runtime";
import { decorateBackend, type StorageBackend } from "@plinth/storage";
import { createIfMissing } from "../src/file/create-storage.ts";
import { StorageWriter } from "../src/file/storage-writer.ts";
import { createSqliteBackend } from "../src/index.ts";

const seconds = numberOption("seconds", 3, 0.1);
const writers = 64;
/** Each writer creates a hundred resources, and then replaces them in turn. */
const names = 100;

const tenancy = { namespace: "written" };

async function inDirectory<T>(body: (path: string) => Promise<T>): Promise<T> {
	const directory = await mkdtemp(join(tmpdir(), "plinth-bench-"));
	try {
		return await body(join(directory, "storage.db"));
	} finally {
		await rm(directory, { recursive: true });
	}
}

/** Lets one commit after the other through, so that none shares a transaction. */
function oneAtATime(backend: StorageBackend): StorageBackend {
	let last: Promise<unknown> = Promise.resolve();
	return decorateBackend(backend, {
		commit(mutations, options) {
			const commit = last.then(() => backend.commit(mutations, options));
			last = commit.catch(() => {});
			return commit;
		},
	});
}

function validated(decorate: (backend: StorageBackend) => StorageBackend): Promise<Load> {
	return inDirectory(async (path) => {
		const backend = decorate(await createSqliteBackend({ path }));
		await ensureDefaultTenancy(backend, systemRuntime);
		const service = createResourceService({
			backend,
			registry: new TypeRegistry([Partition, Namespace, Tombstone, ...demoTypes]),
			authorizer: insecureAllowAll,
		});
		const transport = createInProcessTransport((router) =>
			router.service(ResourceService, service),
		);
		const client = createInProcessClient(ResourceService, transport);
		const data = create(NamespaceSchema);
		await client.write({
			resource: resourceOf(Namespace, { id: idOf(Namespace, "written"), data }),
		});
		const measured = await runCallers(writers, seconds, async (writer, step) => {
			await client.write({ resource: artist(`a${writer}-${step % names}`, tenancy) });
		});
		await backend.close();
		return measured;
	});
}

function oneByOne(): Promise<Load> {
	return inDirectory(async (path) => {
		createIfMissing(path, { uid: "bench", incarnation: "bench" });
		const storage = new StorageWriter(path, { revision: 0, resources: 0, digest: 0 });
		let revision = 0;
		let last: Promise<void> = Promise.resolve();
		const write = (resource: Resource) => {
			const key = nameKey(resource.id ?? { name: "" });
			revision += 1;
			storage.write(revision, [{ key, revision, body: toBinary(ResourceSchema, resource) }]);
		};
		const measured = await runCallers(writers, seconds, (writer, step) => {
			last = last.then(() => write(artist(`a${writer}-${step % names}`, tenancy)));
			return last;
		});
		storage.close();
		return measured;
	});
}

const perCommit = (load: Load) => 1e6 / load.perSecond;
const table = new ComparisonTable("Time per durable write of all writers together", "µs");
await table.measure(
	`${writers} writers`,
	{
		"group commit, service and client": async () =>
			perCommit(await validated((backend) => backend)),
		"one transaction per commit, service and client": async () =>
			perCommit(await validated(oneAtATime)),
		"one transaction per commit, no service": async () => perCommit(await oneByOne()),
	},
	{ rounds: unlessQuick(3, 1), warmUpRounds: 0 },
);
table.print();
