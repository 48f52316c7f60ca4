/** The headings of columns of numbers. */
export function NumberHeadings({ of }: { readonly of: readonly string[] }) {
	return of.map((each) => (
		<th key={each} scope="col" className="number">
			{each}
		</th>
	));
}
