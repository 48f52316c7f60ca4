import { type Access, type Authorizer, allowed } from "@plinth/resource";

const fullRights: Access = {
	subject: "anyone",
	check: () => allowed,
	checkEveryName: () => allowed,
};

/**
 * Gives everyone full rights, token or not: for in-process clients that are trusted, and for servers
 * that no one else can reach. The name is long so that no one uses it by accident.
 */
export const everyoneMayDoEverything: Authorizer = {
	tokenless: fullRights,
	authenticate: () => fullRights,
};
