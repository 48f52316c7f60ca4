import { type Access, type Authorizer, allowed } from "@plinth/resource";

const fullRights: Access = {
	subject: "anyone",
	check: () => allowed,
	checkEveryName: () => allowed,
};

/**
 * Gives everyone full rights, token or not: for servers that no one else can reach. The name is long so
 * that no one uses it by accident.
 */
export const insecureAllowAll: Authorizer = {
	tokenless: fullRights,
	authenticate: () => fullRights,
};

const deploymentAccess: Access = { ...fullRights, subject: "deployment", isDeployment: true };

/**
 * For clients that are part of the deployment: controllers, modules, other deployments that have its
 * credential. What they reference is not decided on, here or at other deployments.
 */
export const deploymentAuthorizer: Authorizer = {
	tokenless: deploymentAccess,
	authenticate: () => deploymentAccess,
};
