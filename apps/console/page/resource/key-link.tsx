import type { ResourceKey } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { ResourceLink } from "../parts/resource-link.tsx";

/** A link to a resource that is named without its group version. */
export function KeyLink({ resource }: { readonly resource: ResourceKey | undefined }) {
	if (resource === undefined) {
		return null;
	}
	const { group, kind, partition, namespace, name } = resource;
	return (
		<ResourceLink resource={{ type: { group, kind }, tenancy: { partition, namespace }, name }} />
	);
}

/** Identifies a resource among others. */
export function keyText(resource: ResourceKey | undefined): string {
	const { group, kind, partition, namespace, name, region } = resource ?? {};
	return [group, kind, partition, namespace, name, region].join("/");
}
