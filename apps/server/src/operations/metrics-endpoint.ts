import { type Authorizer, operatorRead, type TypeLike } from "@plinth/resource";
import { authenticateCall, enforce } from "@plinth/resource-service";
import type { MetricsEndpoint } from "../listener/plain-endpoints.ts";
import { type Metrics, prometheusType } from "./metrics.ts";

/** The type that policies name to grant access to metrics: `internal.v1.Metrics`. */
const metricsType: TypeLike = { group: "internal", groupVersion: "v1", kind: "Metrics" };

/** Serves `/metrics` to callers who may read it. */
export function metricsEndpoint(metrics: Metrics, authorizer: Authorizer): MetricsEndpoint {
	return {
		contentType: prometheusType,
		authorize: async (requestHeader) => {
			const access = await authenticateCall(authorizer, { requestHeader });
			enforce(access.check(operatorRead, { type: metricsType, name: "" }));
		},
		text: () => metrics.prometheus(),
	};
}
