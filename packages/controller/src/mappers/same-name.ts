import type { DescMessage } from "@bufbuild/protobuf";
import { idOf, type ResourceType } from "@plinth/resource";
import { type Mapper, readOnly } from "../define/mapper.ts";

/**
 * Maps to the resource of that type with the same name, in the same tenancy as far as the scope of the
 * type allows; units of tenancy that only that type has are `default`.
 */
export function sameNameAs<Desc extends DescMessage>(type: ResourceType<Desc>): Mapper {
	return readOnly((_, { resource: { id } }) =>
		id === undefined ? [] : [idOf(type, id.name, id.tenancy)],
	);
}
