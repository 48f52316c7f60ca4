import {
	DeletedDeploymentSchema,
	DeploymentSchema,
	RegionSchema,
	ServiceSchema,
} from "@plinth/proto/gen/plinth/meta/v1/meta_pb.js";
import { defineType, denied, labelProblem } from "@plinth/resource";
import { isServerAddress } from "../protocol/server-address.ts";

/** The service whose deployments store the types of this file. */
export const metaService = "meta";

/** A place where services are deployed: `meta.v1.Region`. */
export const Region = defineType(RegionSchema);

/** A family of types with API versions: `meta.v1.Service`. */
export const Service = defineType(ServiceSchema);

/** One service in one region: `meta.v1.Deployment`. */
export const Deployment = defineType(DeploymentSchema, {
	validate({ data }) {
		for (const field of ["service", "region"] as const) {
			const problem = labelProblem(data[field]);
			if (problem !== undefined) {
				throw new Error(`${field} "${data[field]}" ${problem}`);
			}
		}
		if (data.address !== "" && !isServerAddress(data.address)) {
			throw new Error(`address "${data.address}" is not an http or https URL`);
		}
	},
});

/** The permanent record of a deleted deployment: `meta.v1.DeletedDeployment`. */
export const DeletedDeployment = defineType(DeletedDeploymentSchema, {
	authorize: {
		write: () =>
			denied("records of deleted deployments are kept by the server: they can't be written"),
	},
});

/** All types of the meta service. */
export const metaTypes = [Region, Service, Deployment, DeletedDeployment] as const;

/** The name of the record of a deployment's deletion. */
export function deletedDeploymentName(uid: string): string {
	return uid.toLowerCase();
}
