// Pictures of the console for the pages: see scripts/edit/screenshots.

import { Tab, launch } from './browser.mjs'

const [folder] = process.argv.slice(2)
const password = process.env.DEMO_PASSWORD
const browser = await launch()

const picture = async (tab, name) => {
  await tab.page.evaluate(() => document.activeElement?.blur())
  await tab.page.mouse.move(0, 0)
  await tab.page.screenshot({ path: `${folder}/${name}.png` })
  console.log(`${folder}/${name}.png`)
}

const editor = await Tab.as(browser, { username: 'acme-accountant', password }, { width: 1180, height: 640 })
await editor.go('data/invoices?filter=status%3Din%3D(SENT%2COVERDUE%2CPAID)&sort=-total', 'Invoices')
await editor.click('button', 'Change filter')
await picture(editor, 'data')
await editor.go('data/invoices', 'Invoices')
await editor.page.locator('td a.first').click()
await editor.says('Line items 3')
await editor.quiet()
await picture(editor, 'resource')
await editor.go('data/tags?filter=name==rush', 'Tags')
await editor.page.locator('td a.first').click()
await editor.says('rush', 'h1')
for (const colour of ['#d62728', '#9467bd']) {
  await editor.click('button', 'Edit')
  await editor.fill('colour', colour)
  await editor.click('button', 'Save')
  await editor.says(colour, 'dd')
}
await editor.click('link', 'History')
await editor.says('History', 'h1')
await editor.quiet()
await editor.page.evaluate(() => document.querySelectorAll('.notice').forEach((line) => line.remove()))
await picture(editor, 'history')
await editor.go('declarations', 'Declarations')
await picture(editor, 'declarations')
await editor.go('explorer/getMe', 'Explorer')
await editor.click('button', 'Send')
await editor.says('200', '.chip')
await editor.page.evaluate(() => scrollTo(0, 0))
await picture(editor, 'explorer')
await editor.close()

const admin = await Tab.as(browser, { username: 'acme-admin', password }, { width: 1180, height: 640 })
await admin.page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }])
await admin.go('audit?outcome=SUCCESS', 'Audit log')
await picture(admin, 'audit')
await admin.close()

const narrow = await Tab.as(browser, { username: 'acme-accountant', password }, { width: 360, height: 640 })
await narrow.go('data/customers/new', 'New customer')
await narrow.fill('email', 'no address')
await narrow.click('button', 'Create customer')
await narrow.see('[name=name][aria-invalid]')
await narrow.page.evaluate(() => scrollTo(0, 0))
await picture(narrow, 'narrow')
await narrow.close()
await browser.close()
