import type { DescMessage } from "@bufbuild/protobuf";
import { cloneID, type ID } from "@plinth/proto";
import { idOf, type ResourceType, type TenancyLike, tenancyOf } from "@plinth/resource";

/** Derives the ID to look up from the ID of the changed resource. */
export type IdModifier = (id: ID) => ID;

/** The ID of the resource of that type with the same name and tenancy. */
export function ofType<Desc extends DescMessage>(type: ResourceType<Desc>): IdModifier {
	return (id) => idOf(type, id.name, id.tenancy);
}

/** The ID with parts of its tenancy replaced. */
export function inTenancy(tenancy: TenancyLike): IdModifier {
	return (id) => ({ ...cloneID(id), tenancy: tenancyOf({ ...id.tenancy, ...tenancy }) });
}

/** The ID with another name, derived from it. */
export function named(name: (id: ID) => string): IdModifier {
	return (id) => ({ ...cloneID(id), name: name(id) });
}

/** Applies modifiers in order. */
export function modified(id: ID, modifiers: readonly IdModifier[]): ID {
	return modifiers.reduce((current, modify) => modify(current), id);
}
