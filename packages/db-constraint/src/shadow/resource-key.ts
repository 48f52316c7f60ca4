import { hash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import {
	type ResourceKey,
	ResourceKeySchema,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { ResourceName } from "@plinth/resource";

/** The parts of a `ResourceKey` message. */
export type KeyLike = Omit<ResourceKey, "$typeName" | "$unknown">;

/** A key message. */
export function keyOf(name: ResourceName, region: string): ResourceKey {
	return create(ResourceKeySchema, {
		group: name.type?.group ?? "",
		kind: name.type?.kind ?? "",
		partition: name.tenancy?.partition ?? "",
		namespace: name.tenancy?.namespace ?? "",
		name: name.name,
		region,
	});
}

/** The key as one string, for maps. None of the parts of a valid name has a slash. */
export function keyString(key: KeyLike): string {
	return `${localKeyString(key)}@${key.region}`;
}

/** Like `keyString`, without the region: for resources of one deployment. */
export function localKeyString(key: KeyLike): string {
	return `${key.group}.${key.kind}/${key.partition}/${key.namespace}/${key.name}`;
}

/** The key for messages: `iam.Project default/default/p (us-west2)`. */
export function displayKey(key: KeyLike): string {
	const path = [key.partition, key.namespace, key.name].filter((part) => part).join("/");
	return `${key.group}.${key.kind} ${path}${key.region && ` (${key.region})`}`;
}

/** The name of the resource in its deployment. The group version is not part of it. */
export function nameOfKey(key: KeyLike): Required<Omit<ResourceName, "region">> {
	return {
		type: { group: key.group, groupVersion: "", kind: key.kind },
		tenancy: { partition: key.partition, namespace: key.namespace },
		name: key.name,
	};
}

/** A hash of a string in hexadecimal digits. */
export function hashOf(text: string): string {
	return hash("sha256", text);
}
