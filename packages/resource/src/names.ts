const labelPattern = /^[a-z\d]([a-z\d-]{0,61}[a-z\d])?$/;

/**
 * Why a name, partition or namespace is malformed; `undefined` if it is a lower-case DNS label of at most
 * 63 characters.
 */
export function labelProblem(value: string): string | undefined {
	if (labelPattern.test(value)) {
		return undefined;
	}
	if (value.length > 63) {
		return "must be at most 63 characters long";
	}
	return "must consist of lower-case letters, digits and hyphens, and start and end with a letter or digit";
}

/** Why a name prefix is malformed; `undefined` for any lower-case string. */
export function namePrefixProblem(value: string): string | undefined {
	return value === value.toLowerCase() ? undefined : "must be lower-case";
}
