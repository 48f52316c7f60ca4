/** Where a server is. */
export interface ServerTarget {
	/** Its URL: scheme, host and port. */
	readonly address: string;
	/** The name that its certificate must have, if it is not the host of the URL. */
	readonly certificateName?: string;
}

/** Whether two targets are one: then a change of the set leaves the server as it is. */
export function isSameTarget(a: ServerTarget, b: ServerTarget): boolean {
	return a.address === b.address && a.certificateName === b.certificateName;
}
