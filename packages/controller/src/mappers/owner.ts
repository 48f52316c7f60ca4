import type { DescMessage } from "@bufbuild/protobuf";
import { familyKey, type ResourceType } from "@plinth/resource";
import { type Mapper, readsOnly } from "../define/mapper.ts";

/** To the owner, of whatever type; nothing where there is none. */
export const mapOwner: Mapper = readsOnly((_, { resource }) =>
	resource.owner === undefined ? [] : [resource.owner],
);

/** To the owner where it is of that type, in any group version; nothing where it is not. */
export function ownerOfType<Desc extends DescMessage>(type: ResourceType<Desc>): Mapper {
	return readsOnly((_, { resource: { owner } }) =>
		owner?.type !== undefined && familyKey(owner.type) === type.family ? [owner] : [],
	);
}
