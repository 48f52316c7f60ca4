/** The repository that published packages name. npm compares it with the one that a provenance statement names. */
export interface Repository {
	readonly type: "git";
	/** Such as `git+https://github.com/owner/name.git`. */
	readonly url: string;
}

/**
 * The repository at the URL of a remote, in any of the forms that git takes.
 *
 * @returns undefined if it is no URL of a host, such as a path.
 */
export function repositoryAt(remote: string): Repository | undefined {
	const match =
		/^(?:(?:git\+)?(?:https?|ssh|git):\/\/(?:[^@/]+@)?|[\w-]+@)(?<host>[\w.-]+)(?::\d+)?[/:](?<path>[^?#]+?)(?:\.git)?\/?$/.exec(
			remote.trim(),
		);
	const { host, path } = match?.groups ?? {};
	return host === undefined || path === undefined
		? undefined
		: { type: "git", url: `git+https://${host}/${path}.git` };
}
