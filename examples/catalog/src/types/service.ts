import { defineType, namePrefixProblem } from "@plinth/resource";
import { ServiceSchema } from "../gen/catalog/v1/catalog_pb.ts";
import { checkPortName } from "./problems.ts";

/** A service, offered under one name by the workloads that it selects. */
export const Service = defineType(ServiceSchema, {
	validate: ({ data }) => {
		if (data.workloadPrefix === "") {
			throw new Error("resource.data.workload_prefix is required");
		}
		const problem = namePrefixProblem(data.workloadPrefix);
		if (problem !== undefined) {
			throw new Error(`resource.data.workload_prefix invalid: ${problem}`);
		}
		checkPortName("resource.data.port_name", data.portName);
	},
});
