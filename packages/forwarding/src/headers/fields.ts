/** An empty map of fields, without a prototype: in other objects, an assignment to `__proto__` adds no field. */
export function noFields(): Record<string, string> {
	return Object.create(null);
}
