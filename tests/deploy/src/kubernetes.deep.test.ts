import { Deployment, StatefulSet } from "kubernetes-models/apps/v1";
import { PodDisruptionBudget } from "kubernetes-models/policy/v1";
import { Service } from "kubernetes-models/v1";
import { describe, expect, it } from "vitest";
import { lastStageOf, manifests, resourcesOf } from "./artifacts.fixture.ts";

interface Model {
	validate(): void;
}

const models: Readonly<Record<string, new (data: never) => Model>> = {
	Deployment,
	PodDisruptionBudget,
	Service,
	StatefulSet,
};

interface Resource {
	readonly kind: string;
	readonly spec: { readonly template?: { readonly spec: PodSpec } };
}

interface PodSpec {
	readonly securityContext: object;
	readonly containers: readonly {
		readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
		readonly securityContext: object;
		readonly readinessProbe: { readonly httpGet: object };
		readonly livenessProbe: { readonly httpGet: object };
		readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
	}[];
}

describe.each(manifests)("%s", (file) => {
	const resources = resourcesOf(file) as readonly Resource[];
	const pods = resources.flatMap(({ spec }) => spec.template?.spec ?? []);

	it("is valid in the schemas of Kubernetes", () => {
		for (const resource of resources) {
			const model = models[resource.kind];
			expect(model, resource.kind).toBeDefined();
			if (model !== undefined) {
				expect(() => new model(resource as never).validate()).not.toThrow();
			}
		}
	});

	it("meets the restricted policy of pods, with a read-only file system", () => {
		expect(pods).toHaveLength(1);
		for (const { securityContext, containers } of pods) {
			expect(securityContext).toMatchObject({
				runAsNonRoot: true,
				seccompProfile: { type: "RuntimeDefault" },
			});
			expect(containers).toMatchObject([
				{
					securityContext: {
						allowPrivilegeEscalation: false,
						readOnlyRootFilesystem: true,
						capabilities: { drop: ["ALL"] },
					},
				},
			]);
		}
	});

	it("uses the port and the health checks of the server, and the volume of the image", () => {
		const image = lastStageOf("deploy/image/Dockerfile");
		const port = image.find(({ keyword }) => keyword === "EXPOSE")?.text;
		for (const { ports, readinessProbe, livenessProbe, volumeMounts } of pods.flatMap(
			({ containers }) => containers,
		)) {
			expect(ports).toEqual([{ name: "api", containerPort: Number(port) }]);
			expect(readinessProbe.httpGet).toEqual({ path: "/readyz", port: "api" });
			expect(livenessProbe.httpGet).toEqual({ path: "/healthz", port: "api" });
			for (const { mountPath } of volumeMounts.filter(({ name }) => name === "data")) {
				expect(mountPath).toBe("/data");
			}
		}
	});

	it("would be refused with a mistake", () => {
		const [service] = resources;
		const wrong = { ...service, spec: { ...service?.spec, ports: [{ port: "7575" }] } };
		expect(() => new Service(wrong as never).validate()).toThrow("port");
	});
});
