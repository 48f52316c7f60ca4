import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { OriginSchema, type Resource } from "@plinth/proto";
import {
	type StreamResponse,
	StreamResponseSchema,
} from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { ImportRecordSchema } from "@plinth/proto/gen/plinth/peering/v1/peering_record_pb.js";
import { newUlid, type ResourceType, typeOf } from "@plinth/resource";
import { systemRuntime } from "@plinth/runtime";
import { Exhausted } from "@plinth/storage";
import { expect, it } from "vitest";
import { Good, good, Other } from "../simulation/goods.fixture.ts";
import { MessageApplier } from "./apply-messages.ts";
import { type ImportStore, TooManyCopies } from "./import-store.ts";
import { LeftOutResources } from "./left-out.ts";

const uid = newUlid(systemRuntime);
const own = newUlid(systemRuntime);
function message(
	init: MessageInitShape<typeof StreamResponseSchema>["message"],
	isCurrent = false,
) {
	return create(StreamResponseSchema, { message: init as StreamResponse["message"], isCurrent });
}

it("what there is no room for ends a stream only when all types are sent: one may remove what makes room", async () => {
	const removed: string[] = [];
	const store = {
		record: create(ImportRecordSchema),
		find: async () => undefined,
		remove: async () => {},
		removeOthers: async ({ kind }: { kind: string }) => void removed.push(kind),
		async commit(copies: readonly unknown[]) {
			if (copies.length > 0) {
				throw new TooManyCopies("too many");
			}
		},
	} as unknown as ImportStore;
	const applier = applierOf(store, [Good, Other]);
	const snapshotOf = (type: ResourceType["type"], ...copies: StreamResponse[]) => [
		message({ case: "snapshotStart", value: { type: typeOf(type), version: "" } }),
		...copies,
		message({ case: "endOfSnapshot", value: { type: typeOf(type), version: "1" } }, true),
	];
	// The source has nothing more for now, since it has not begun with the other type.
	await applier.apply(snapshotOf(Good.type, upsertOf("ale")));
	expect(applier.noRoom).toBeInstanceOf(TooManyCopies);
	await expect(applier.apply(snapshotOf(Other.type))).rejects.toThrow("too many");
	expect(removed).toEqual(["Good", "Other"]);
});

it("what there is no room for does not end a stream while a type that is resumed has not begun", async () => {
	const removed: string[] = [];
	const positions = [Good, Other].map(({ type }) => ({ type: typeOf(type), version: "1" }));
	const store = {
		record: create(ImportRecordSchema, { positions }),
		find: async () => undefined,
		remove: async (copies: readonly Resource[]) =>
			void removed.push(...copies.map(({ id }) => id?.name ?? "")),
		async commit(copies: readonly unknown[]) {
			if (copies.length > 0) {
				throw new TooManyCopies("too many");
			}
		},
	} as unknown as ImportStore;
	const applier = applierOf(store, [Good, Other]);
	await applier.apply([{ ...upsertOf("ale"), isCurrent: true }]);
	expect(applier.noRoom).toBeInstanceOf(TooManyCopies);
	const position = { type: typeOf(Other.type), version: "2" };
	await expect(
		applier.apply([message({ case: "position", value: position }, true)]),
	).rejects.toThrow("too many");
	const quiet = applierOf(store, [Good, Other]);
	await quiet.apply([{ ...upsertOf("ale"), isCurrent: true }]);
	await expect(quiet.apply([message({ case: "heartbeat", value: {} })])).rejects.toThrow(
		"too many",
	);
});

it("a name of a snapshot whose copy is left out later is forgotten", async () => {
	const kept: string[] = [];
	const store = {
		record: create(ImportRecordSchema),
		find: async () => undefined,
		remove: async () => {},
		removeOthers: async (_: unknown, names: ReadonlySet<string>) => void kept.push(...names),
		commit: async () => {},
	} as unknown as ImportStore;
	const applier = applierOf(store, [Good], (copy) => copy.metadata.problem);
	const broken = upsertOf("ale");
	if (broken.message.case === "upsert" && broken.message.value.resource !== undefined) {
		broken.message.value.resource.metadata = { problem: "of its rules" };
	}
	await applier.apply([
		message({ case: "snapshotStart", value: { type: typeOf(Good.type), version: "" } }),
		upsertOf("ale"),
		upsertOf("stout"),
		broken,
		message({ case: "endOfSnapshot", value: { type: typeOf(Good.type), version: "1" } }),
	]);
	expect(kept).toEqual([expect.stringContaining("stout")]);
});

it("a copy that does not fit leaves no others stale, and many of them are not tried one by one", async () => {
	const changed = new Set<string>();
	let refusals = 0;
	const store = {
		record: create(ImportRecordSchema),
		find: async () => good("stored", ""),
		remove: async () => {},
		async commit(copies: readonly Resource[]) {
			const names = copies.map(({ id }) => id?.name ?? "");
			if (names.some((name) => name.startsWith("large"))) {
				refusals += 1;
				throw new Exhausted("it would grow");
			}
			for (const name of names) {
				changed.add(name);
			}
		},
	} as unknown as ImportStore;
	const applier = applierOf(store, [Good]);
	const names = Array.from({ length: 40 }, (_, at) => (at === 7 ? "large" : `good-${at}`));
	await applier.apply(names.map((name) => upsertOf(name)));
	expect([...changed]).toEqual(names.filter((name) => name !== "large"));
	for (let batch = 0; batch < 100; batch += 1) {
		await applier.apply(names.map((_, at) => upsertOf(`large-${batch}-${at}`)));
	}
	expect(refusals).toBeLessThan(500);
});

function upsertOf(name: string): StreamResponse {
	const origin = { cluster: uid, incarnation: uid, uid, version: "1", path: [uid] };
	const resource = { ...good(name, ""), generation: uid, origin: create(OriginSchema, origin) };
	return message({ case: "upsert", value: { resource, version: "" } });
}

function applierOf(
	store: ImportStore,
	types: readonly ResourceType[],
	problem: (copy: Resource) => string | undefined = () => undefined,
): MessageApplier {
	return new MessageApplier({
		...{ store, types, registry: { get: () => Good } },
		place: {
			...{ kind: "peer", partition: "copies", peering: "west" },
			...{ peerCluster: uid, ownCluster: own },
		},
		check: { problem },
		leftOut: new LeftOutResources(),
	});
}
