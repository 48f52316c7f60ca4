import { create } from "@bufbuild/protobuf";
import {
	MetaOwnerSchema,
	OutgoingReferenceSchema,
	ResourceKeySchema,
	type Shadow,
	ShadowSchema,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { silentLogger, systemRuntime } from "@plinth/runtime";
import { createMemoryBackend } from "@plinth/storage";
import { expect, it, onTestFinished } from "vitest";
import { Thing } from "../../testdata/types.ts";
import type { DeploymentInfo } from "../registry/environment.ts";
import { localEnvironment } from "../registry/local-environment.ts";
import { ServiceDescriptor } from "../schema/service-descriptor.ts";
import { ShadowIndex } from "../shadow/shadow-index.ts";
import { putRecord, recordId } from "../shadow/shadow-records.ts";
import { ConcernedShadows } from "./concerned-shadows.ts";

/** An index, a registry that is changed by hand, and the names that were queued since the last look. */
function follow() {
	const backend = createMemoryBackend();
	const index = new ShadowIndex(backend, systemRuntime, silentLogger);
	const end = new AbortController();
	const running = index.run(end.signal);
	onTestFinished(async () => {
		end.abort();
		await running;
	});
	const known = new Map<string, DeploymentInfo>();
	let onChange = () => {};
	const { self } = localEnvironment("own");
	const concerned = new ConcernedShadows({
		index,
		descriptor: new ServiceDescriptor({ types: [Thing], service: "alpha" }),
		environment: {
			...localEnvironment("own"),
			byUid: (uid) => known.get(uid),
			successorOf: (uid) => [...known.values()].find((each) => each.predecessorUid === uid),
			findOwner: (_group, _service, region) =>
				[...known.values()].find((each) => each.region === region),
			onChange: (listener) => {
				onChange = listener;
				return () => {};
			},
		},
	});
	const queued = new Set<string>();
	concerned.follow((name) => queued.add(name));
	const take = () => {
		const names = [...queued].sort();
		queued.clear();
		return names;
	};
	return {
		/** Stores a shadow, and returns the names of the shadows that are queued once the index has it. */
		async store(name: string, init: Partial<Pick<Shadow, "outgoing" | "metaOwners">>) {
			const resource = create(ResourceKeySchema, { group: "alpha", kind: "Thing", name });
			const value = create(ShadowSchema, { resource, uid: name, ...init });
			const record = { case: "shadow", value } as const;
			const stored = await backend.lookup(recordId(name));
			const { version } = await backend.commit([putRecord(systemRuntime, name, stored, record)]);
			await index.reached(version);
			return take();
		},
		/** Changes a deployment, and returns the names of the shadows that are queued. */
		change(uid: string, info: Partial<DeploymentInfo> | undefined): readonly string[] {
			known.delete(uid);
			if (info !== undefined) {
				known.set(uid, { ...self, uid, ...info });
			}
			onChange();
			return take();
		},
	};
}

const references = (deploymentUid: string) => ({
	outgoing: [create(OutgoingReferenceSchema, { deploymentUid })],
});

const ownedIn = (region: string) => ({
	metaOwners: [
		create(MetaOwnerSchema, { owner: create(ResourceKeySchema, { group: "beta", region }) }),
	],
});

it("a change of the registry queues the shadows that it concerns, once, and no others", async () => {
	const { store, change } = follow();
	await store("to-b", references("b"));
	await store("to-c", references("c"));
	await store("owned-in-r1", ownedIn("r1"));
	await store("owned-in-r2", ownedIn("r2"));
	await store("neither", {});
	expect(change("b", { region: "r1" })).toEqual(["owned-in-r1", "to-b"]);
	expect(change("b", { region: "r1" })).toEqual([]);
	expect(change("b", { region: "r1", version: "v2" })).toEqual(["owned-in-r1"]);
	expect(change("d", { predecessorUid: "c" })).toEqual(["to-c"]);
	expect(change("b", undefined)).toEqual(["owned-in-r1", "to-b"]);
	await store("later", references("b"));
	expect(change("b", {})).toEqual(["later", "to-b"]);
});

it("a change of the registry queues the shadows with targets that are missing there", async () => {
	const { store, change } = follow();
	const missing = (region: string, targetUid: string) => ({
		outgoing: [
			create(OutgoingReferenceSchema, {
				target: create(ResourceKeySchema, { group: "beta", region }),
				targetUid,
			}),
		],
	});
	await store("missing-in-r1", missing("r1", ""));
	await store("missing-in-r2", missing("r2", ""));
	await store("found-in-r1", missing("r1", "a"));
	expect(change("b", { region: "r1" })).toEqual(["missing-in-r1"]);
	expect(change("b", { region: "r1" })).toEqual([]);
	expect(change("c", { region: "r2" })).toEqual(["missing-in-r2"]);
});

it("a shadow that the index learns of after the registry has changed is queued", async () => {
	const { store, change } = follow();
	change("b", { region: "r1", version: "v2" });
	expect(await store("owned-in-r1", ownedIn("r1"))).toEqual(["owned-in-r1"]);
	expect(await store("to-b", references("b"))).toEqual(["to-b"]);
	// Only what it depends on matters, and only if that is new.
	expect(await store("owned-in-r1", ownedIn("r1"))).toEqual([]);
	expect(await store("to-b", {})).toEqual([]);
	expect(await store("to-b", references("b"))).toEqual(["to-b"]);
});
