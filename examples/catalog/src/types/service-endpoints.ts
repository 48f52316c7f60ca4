import { defineType, familyKey } from "@plinth/resource";
import { ServiceEndpointsSchema } from "../gen/catalog/v1/catalog_pb.ts";
import { Service } from "./service.ts";

/** The healthy addresses of the service of the same name, its owner. Computed, not declared. */
export const ServiceEndpoints = defineType(ServiceEndpointsSchema, {
	validate: ({ resource: { id, owner } }) => {
		const isService = owner?.type !== undefined && familyKey(owner.type) === Service.family;
		if (!isService || owner.name !== id?.name) {
			throw new Error(
				"resource.owner invalid: it must be the service of the same name, whose controller writes this",
			);
		}
	},
});
