import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { ControllerService } from "@plinth/proto";
import { ReconcileState } from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import { Namespace } from "@plinth/resource";
import { PolicyAuthorizer } from "@plinth/resource-service";
import { describe, expect, it } from "vitest";
import { createServer } from "../server.ts";

describe("the reports on controllers", () => {
	it("are served only to callers who may read them", async () => {
		const authorizer = new PolicyAuthorizer();
		authorizer.grant("operator", {
			subject: "operator",
			rules: [{ operations: ["operator:read"], type: "internal.*" }],
		});
		authorizer.grant("user", {
			subject: "user",
			rules: [{ operations: ["*"], type: "demo.*" }],
		});
		authorizer.grant("tenant", {
			subject: "tenant",
			rules: [{ operations: ["operator:read"], type: "tenancy.*" }],
		});
		const server = createServer({
			storage: { kind: "memory" },
			listen: { host: "127.0.0.1", port: 0 },
			authorizer,
		});
		await server.start();
		try {
			const client = createClient(
				ControllerService,
				createConnectTransport({ baseUrl: server.address, httpVersion: "2" }),
			);
			const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
			const { controllers } = await client.listControllers({}, as("operator"));
			expect(controllers.map(({ name }) => name)).toEqual([
				"reaper",
				"namespace-deletion",
				"partition-deletion",
				"db-constraint",
			]);
			const refused = await client.listControllers({}, as("user")).catch(ConnectError.from);
			expect(refused).toMatchObject({ code: Code.PermissionDenied });
			// Who may read a resource may ask what controllers do with it.
			// The request may leave out the partition.
			const namespace = { id: { type: { ...Namespace.type }, name: "default" } };
			const ofNamespace = await client.listReconciles(namespace, as("tenant"));
			expect(ofNamespace.reconciles).toMatchObject([
				{ controller: "namespace-deletion", state: ReconcileState.IDLE },
			]);
			const hidden = await client.listReconciles(namespace, as("user")).catch(ConnectError.from);
			expect(hidden).toMatchObject({ code: Code.PermissionDenied });
			const one = await client
				.getController({ name: "reaper" }, as("tenant"))
				.catch(ConnectError.from);
			expect(one).toMatchObject({ code: Code.PermissionDenied });
			const { controller } = await client.getController({ name: "db-constraint" }, as("operator"));
			expect(controller?.manages).toBe("schema.v1.ResourceShadow");
			const unknown = await client.getDependencyGraph({}).catch(ConnectError.from);
			expect(unknown).toMatchObject({ code: Code.Unauthenticated });
		} finally {
			await server.stop();
		}
	});
});
