// Slow: it judges each of its pages four times.
/** A third of the dashboard's pages for those who see, hear or move less: see test/support/page-access.ts. */
import { accessTest } from '../support/page-access.ts'

accessTest(0)
