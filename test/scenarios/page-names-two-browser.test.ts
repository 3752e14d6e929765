// By name: it opens a third of the dashboard's pages.
/** A third of the dashboard's pages with long names: see test/support/page-names.ts. */
import { namesTest } from '../support/page-names.ts'

namesTest({ index: 1, of: 3 })
