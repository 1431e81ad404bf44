// A keyboard is enough, and shows where one is.

import assert from 'node:assert/strict'
import { Tab, check } from './browser.mjs'

const TABS = 70

const focused = (tab) => tab.page.evaluate(() => {
  const { activeElement: node } = document
  return node.getAttribute('aria-label') ?? node.innerText ?? ''
})

/** Goes on with the tabulator until something is called so. */
async function tabTo(tab, name) {
  for (let i = 0; i < TABS; i++) {
    await tab.page.keyboard.press('Tab')
    if ((await focused(tab)).trim().startsWith(name)) return
  }
  throw new Error(`the tabulator does not lead to ${name}`)
}

const press = (tab, key) => tab.page.keyboard.press(key)

/** What has the focus is seen to have it, all along a page. */
async function isSeen(tab, path) {
  await tab.go(path)
  await tab.page.evaluate(() => document.activeElement.blur())
  for (let i = 0; i < TABS; i++) {
    await press(tab, 'Tab')
    const said = await tab.page.evaluate(() => {
      const { activeElement: node } = document
      if (node === document.body) return null
      const { outlineStyle, outlineWidth } = getComputedStyle(node)
      const { width, height } = node.getBoundingClientRect()
      const isNamed = node.getAttribute('aria-label') || node.getAttribute('aria-labelledby') || node.labels?.length > 0 ||
        node.textContent.trim() !== ''
      return { html: node.outerHTML.slice(0, 200), isSeen: outlineStyle !== 'none' && outlineWidth !== '0px', isThere: width > 0 && height > 0, isNamed }
    })
    if (said === null) return i
    assert.ok(said.isSeen && said.isThere && said.isNamed, `${path}: ${JSON.stringify(said)}`)
  }
  return TABS
}

export async function keyboard({ browser, users, example }) {
  const { plain } = example
  const tab = await Tab.open(browser)
  await check('a keyboard is enough', async () => {
    await tab.load()
    await tab.page.keyboard.type(users.editor.username)
    await press(tab, 'Tab')
    await tab.page.keyboard.type(users.editor.password)
    await press(tab, 'Enter')
    await tab.see('.frame h1')
    await tab.page.evaluate(() => document.activeElement.blur())
    await press(tab, 'Tab')
    assert.equal(await focused(tab), 'To the content')
    await press(tab, 'Enter')
    assert.match(await focused(tab), /Welcome/)
    await press(tab, 'Tab')
    await press(tab, 'Enter')
    await tab.see('table, .empty')
    await tab.quiet()
    assert.equal(await focused(tab), await tab.text('h1'), 'a new page begins at its heading')
    await tab.go(`data/${plain.collection}`)
    await tabTo(tab, `New ${plain.single}`)
    await press(tab, 'Enter')
    await tab.says(`New ${plain.single}`, 'h1')
    await tab.quiet()
    await tabTo(tab, `Create ${plain.single}`)
    await press(tab, 'Enter')
    await tab.see('[aria-invalid]')
    assert.equal(await tab.page.evaluate(() => document.activeElement.getAttribute('aria-invalid')), 'true', 'at the first fault')
    await tab.page.keyboard.type(`by keyboard ${users.editor.username}`.slice(0, plain.most))
    await press(tab, 'Enter')
    await tab.says('created')
    await tab.quiet()
    await tabTo(tab, 'Edit')
    await press(tab, 'Enter')
    await tab.see('form.columns')
    await tabTo(tab, 'Cancel')
    await press(tab, 'Enter')
    await tab.gone('form.columns')
    await tab.go('')
    await tabTo(tab, users.editor.username).catch(async () => {
      await tab.page.evaluate(() => document.querySelector('.top summary').focus())
    })
    await press(tab, 'Enter')
    await tab.see('.top details[open]')
    await press(tab, 'Escape')
    await tab.page.waitForFunction(() => !document.querySelector('.top details[open]') && document.activeElement.tagName === 'SUMMARY')
  })
  await check('what has the focus is seen, and has a name', async () => {
    for (const path of ['', `data/${plain.collection}`, `data/${plain.collection}/new`, 'explorer/listOwnApiKeys', 'account', 'declarations']) {
      assert.ok(await isSeen(tab, path) > 2, path)
    }
  })
  await check('the keyboard: no failure of a script, no violation', () => tab.close())
}
