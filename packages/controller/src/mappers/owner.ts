import type { DescMessage } from "@bufbuild/protobuf";
import { familyKey, type ResourceType } from "@plinth/resource";
import { type Mapper, readOnly } from "../define/mapper.ts";

/** Maps to the owner of any type, if there is one. */
export const mapOwner: Mapper = readOnly((_, { resource }) =>
	resource.owner === undefined ? [] : [resource.owner],
);

/** Maps to the owner if it is of that type, in any group version. */
export function ownerOfType<Desc extends DescMessage>(type: ResourceType<Desc>): Mapper {
	return readOnly((_, { resource: { owner } }) =>
		owner?.type !== undefined && familyKey(owner.type) === type.family ? [owner] : [],
	);
}
