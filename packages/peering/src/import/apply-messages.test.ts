import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { OriginSchema } from "@plinth/proto";
import {
	type StreamResponse,
	StreamResponseSchema,
} from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { ImportRecordSchema } from "@plinth/proto/gen/plinth/peering/v1/peering_record_pb.js";
import { newUlid, type ResourceType, typeOf } from "@plinth/resource";
import { systemRuntime } from "@plinth/runtime";
import { expect, it } from "vitest";
import { Good, good } from "../simulation/goods.fixture.ts";
import { MessageApplier } from "./apply-messages.ts";
import { type ImportStore, TooManyCopies } from "./import-store.ts";
import { LeftOutResources } from "./left-out.ts";

const uid = newUlid(systemRuntime);
const own = newUlid(systemRuntime);
const otherType = { ...Good.type, kind: "Other" };
const Other: ResourceType = {
	...Good,
	type: otherType,
	key: "goods.v1.Other",
	family: "goods.Other",
};

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
	const applier = new MessageApplier({
		...{ store, types: [Good, Other], registry: { get: () => Good } },
		place: {
			...{ kind: "peer", partition: "copies", peering: "west" },
			...{ peerCluster: uid, ownCluster: own },
		},
		check: { problem: () => undefined },
		leftOut: new LeftOutResources(),
	});
	const origin = { cluster: uid, incarnation: uid, uid, version: "1", path: [uid] };
	const resource = { ...good("ale", ""), generation: uid, origin: create(OriginSchema, origin) };
	const snapshotOf = (type: ResourceType["type"], ...copies: StreamResponse[]) => [
		message({ case: "snapshotStart", value: { type: typeOf(type), version: "" } }),
		...copies,
		message({ case: "endOfSnapshot", value: { type: typeOf(type), version: "1" } }, true),
	];
	const upsert = message({ case: "upsert", value: { resource, version: "" } });
	// The source has nothing more for now, since it has not begun with the other type.
	await applier.apply(snapshotOf(Good.type, upsert));
	expect(applier.noRoom).toBeInstanceOf(TooManyCopies);
	await expect(applier.apply(snapshotOf(Other.type))).rejects.toThrow("too many");
	expect(removed).toEqual(["Good", "Other"]);
});
