import { create } from "@bufbuild/protobuf";
import {
	anyOf,
	cacheParents,
	chain,
	contentChanged,
	defineController,
	ownerOfType,
	sameNameAs,
	statusChanged,
	watch,
} from "@plinth/controller";
import { idOf } from "@plinth/resource";
import { ServiceEndpointsSchema } from "../gen/catalog/v1/catalog_pb.ts";
import { checksByWorkload, servicesByWorkload } from "../indexes.ts";
import { HealthCheck } from "../types/health-check.ts";
import { Service } from "../types/service.ts";
import { ServiceEndpoints } from "../types/service-endpoints.ts";
import { Workload } from "../types/workload.ts";
import { healthyEndpoints } from "./healthy-endpoints.ts";

const servicesOfWorkload = cacheParents(servicesByWorkload);

/**
 * Maintains the ServiceEndpoints of each service, under the same name. It manages services, and maps the inputs of
 * their endpoints to them:
 *
 * ```
 * Workload ───────── the services with a prefix of its name ──▶ Service
 * HealthCheck ─────▶ its owner, a Workload ───────────────────▶ Service
 * ServiceEndpoints ─ the service of the same name ────────────▶ Service
 * ```
 *
 * The last mapping restores endpoints that someone else has edited or deleted.
 */
export const endpointsController = defineController({
	name: "catalog-endpoints",
	manages: Service,
	when: contentChanged,
	indexes: [servicesByWorkload, checksByWorkload],
	watches: [
		watch(Workload, { map: servicesOfWorkload, when: contentChanged }),
		watch(HealthCheck, {
			map: chain(ownerOfType(Workload), Workload, servicesOfWorkload),
			when: anyOf(contentChanged, statusChanged),
		}),
		watch(ServiceEndpoints, { map: sameNameAs(Service), when: contentChanged }),
	],
	async reconcile(ctx, request) {
		const service = ctx.cache.get(Service, request.id);
		const id = idOf(ServiceEndpoints, request.id.name, request.id.tenancy);
		const existing = ctx.cache.get(ServiceEndpoints, id)?.resource;
		if (existing?.id !== undefined && existing.owner?.uid !== service?.resource.id?.uid) {
			// The owner can't be changed. After this deletion, the service is reconciled again.
			await ctx.delete(existing.id, { version: existing.version });
			return;
		}
		if (service?.resource.id === undefined) {
			return;
		}
		await ctx.writeIfChanged(ServiceEndpoints, {
			id,
			owner: service.resource.id,
			data: create(ServiceEndpointsSchema, { endpoints: healthyEndpoints(ctx.cache, service) }),
		});
	},
});
