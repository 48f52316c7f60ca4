import { type Access, type Authorizer, allowed } from "@plinth/resource";
import { deploymentWriter } from "@plinth/storage";
import { describedBy } from "./policy-authorizer.ts";

const fullRights: Access = describedBy(
	{ subject: "anyone", rules: [{ operations: ["*"] }] },
	{ subject: "anyone", check: () => allowed, checkEveryName: () => allowed },
);

/**
 * Allows everything to everyone, with or without a token. Use it only for servers that no one else can reach.
 */
export const insecureAllowAll: Authorizer = {
	tokenless: fullRights,
	authenticate: () => fullRights,
};

const deploymentAccess: Access = { ...fullRights, subject: deploymentWriter, isDeployment: true };

/**
 * The authorizer for clients that are part of the deployment: controllers, modules, and other deployments that
 * have its credential. Their references are not authorized, here or at other deployments.
 */
export const deploymentAuthorizer: Authorizer = {
	tokenless: deploymentAccess,
	authenticate: () => deploymentAccess,
};
