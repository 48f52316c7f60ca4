import { create } from "@bufbuild/protobuf";
import type { Resource } from "@plinth/proto";
import { decodeShared, defineType, idOf, type ResourceType, resourceOf } from "@plinth/resource";
import { GoodSchema } from "../../testdata/gen/acme/goods/v1/goods_pb.ts";

/** The type that the clusters copy. */
export const Good = defineType(GoodSchema);

const otherType = { ...Good.type, kind: "Other" };

/** Another type with the same data. */
export const Other: ResourceType = {
	...Good,
	type: otherType,
	key: "goods.v1.Other",
	family: "goods.Other",
};

/** The ID of a good of a cluster. */
export function goodId(name: string, partition = "default", namespace = "default") {
	return idOf(Good, name, { partition, namespace });
}

/** A good, with a secret that may not leave its cluster. */
export function good(name: string, note: string, namespace = "default"): Resource {
	const data = create(GoodSchema, { note, secret: `secret of ${name}` });
	return resourceOf(Good, { id: goodId(name, "default", namespace), data });
}

/** Names that no export has. */
export const privatePrefix = "private-";

/** A copy or a good as text, without what copies don't have. */
export function contentOf(resource: Resource): string {
	const { note, secret } = decodeShared(Good, resource).data;
	const { origin, id } = resource;
	const home = origin ?? { uid: id?.uid, version: resource.version };
	const shown = origin === undefined ? "" : secret;
	return `${id?.name}: ${note} ${shown} ${resource.generation} ${home.uid} ${home.version}`;
}
