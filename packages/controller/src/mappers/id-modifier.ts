import type { DescMessage } from "@bufbuild/protobuf";
import { cloneID, type ID } from "@plinth/proto";
import { idOf, type ResourceType, type TenancyLike, tenancyOf } from "@plinth/resource";

/** Makes, from the ID of the changed resource, the one to look up. */
export type IdModifier = (id: ID) => ID;

/** The ID of the resource of that type with the same name and tenancy. */
export function ofType<Desc extends DescMessage>(type: ResourceType<Desc>): IdModifier {
	return (id) => idOf(type, id.name, id.tenancy);
}

/** The ID with units of its tenancy replaced. */
export function inTenancy(tenancy: TenancyLike): IdModifier {
	return (id) => ({ ...cloneID(id), tenancy: tenancyOf({ ...id.tenancy, ...tenancy }) });
}

/** The ID with another name, made from it. */
export function named(name: (id: ID) => string): IdModifier {
	return (id) => ({ ...cloneID(id), name: name(id) });
}

/** Applies modifiers in their order. */
export function modified(id: ID, modifiers: readonly IdModifier[]): ID {
	return modifiers.reduce((current, modify) => modify(current), id);
}
