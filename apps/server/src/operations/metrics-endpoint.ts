import { Code, ConnectError } from "@connectrpc/connect";
import { type Authorizer, operatorRead, type TypeLike } from "@plinth/resource";
import { accessOf } from "@plinth/resource-service";
import type { MetricsEndpoint } from "../listener/plain-endpoints.ts";
import { type Metrics, prometheusType } from "./metrics.ts";

/** What policies call the metrics: `internal.v1.Metrics`. */
const metricsType: TypeLike = { group: "internal", groupVersion: "v1", kind: "Metrics" };

/** `/metrics`, for those who may read it. */
export function metricsEndpoint(metrics: Metrics, authorizer: Authorizer): MetricsEndpoint {
	return {
		contentType: prometheusType,
		authorize: async (requestHeader) => {
			const access = await accessOf(authorizer, { requestHeader });
			const decision = access.check(operatorRead, { type: metricsType });
			if (decision.kind === "denied") {
				throw new ConnectError(decision.message, Code.PermissionDenied);
			}
		},
		text: () => metrics.prometheus(),
	};
}
