// Resources are made, changed, linked and deleted: by whoever may.

import assert from 'node:assert/strict'
import { SCRIPT, Tab, api, check } from './browser.mjs'

const one = async (token, collection, filter) =>
  (await api('GET', `/api/v1/${collection}?filter=${encodeURIComponent(filter)}`, { token })).data[0]

const confirmed = (tab) => tab.page.locator('dialog .danger').click()

/** Faults at their fields, then a resource whose text is script. */
export async function forms({ user, example, tab }) {
  const { plain } = example
  const name = `${SCRIPT.slice(0, plain.most - user.username.length - 1)} ${user.username}`
  await check(`${user.username}: a form tells faults at their fields`, async () => {
    await tab.go(`data/${plain.collection}/new`, `New ${plain.single}`)
    for (const [field, text] of Object.entries(plain.wrong)) await tab.fill(field, text)
    await tab.click('button', `Create ${plain.single}`)
    for (const field of [plain.label, ...Object.keys(plain.wrong)]) await tab.see(`[name=${field}][aria-invalid]`)
    await tab.audit('with faults', ['color-contrast', 'aria-valid-attr-value', 'label'])
    await tab.fill(plain.label, 'x'.repeat(plain.most + 1))
    await tab.click('button', `Create ${plain.single}`)
    await tab.says(`these are ${plain.most + 1}`, '.fault')
    for (const [field, text] of Object.entries(plain.right)) await tab.fill(field, text)
    await tab.fill(plain.label, name)
    await tab.click('button', `Create ${plain.single}`)
    await tab.says(name, 'h1')
  })
}

/** Whoever presses Enter before anything is found has not sent the form. */
export async function hasty({ user, example, tab }) {
  const { linked: of } = example
  await check(`${user.username}: Enter in a search sends nothing`, async () => {
    await tab.go(`data/${of.collection}/new`, `New ${of.single}`)
    const box = await tab.see(`[name=${of.reference}]`)
    await tab.page.evaluate(() => document.querySelector('form').addEventListener('submit', () => { document.title = 'sent' }, true))
    await box.type('x')
    await tab.page.keyboard.press('Enter')
    await box.type('y')
    await tab.page.keyboard.press('Enter')
    assert.notEqual(await tab.page.title(), 'sent')
    assert.equal(await box.evaluate((one) => one.value), 'xy')
    await tab.go('')
  })
}

/** What was put in is not lost by a slip, and who saves or gives up is not asked. */
export async function leaving({ user, example, tab }) {
  const { plain } = example
  const at = () => tab.page.evaluate(() => location.hash)
  const value = () => tab.page.$eval(`[name=${plain.label}]`, (node) => node.value)
  const leave = () => tab.page.evaluate(() => { location.hash = '#/account' })
  await check(`${user.username}: who leaves a form with something in it is asked`, async () => {
    await tab.go(`data/${plain.collection}/new`, `New ${plain.single}`)
    await tab.fill(plain.label, 'half')
    for (const answer of ['Cancel', 'Escape']) {
      await leave()
      await tab.says('Leave the form?', 'dialog h2')
      await tab.audit('the question')
      if (answer === 'Escape') await tab.page.keyboard.press('Escape')
      else await tab.page.locator('dialog ::-p-text(Cancel)').click()
      await tab.gone('dialog')
      assert.equal(await at(), `#/data/${plain.collection}/new`)
      assert.equal(await value(), 'half')
    }
    await leave()
    await tab.see('dialog')
    await tab.page.locator('dialog .danger').click()
    await tab.says('Own account', 'h1')
  })
  await check(`${user.username}: who gives up, or has put nothing in, is not asked`, async () => {
    await tab.go(`data/${plain.collection}/new`, `New ${plain.single}`)
    await tab.fill(plain.label, 'half')
    await tab.click('button', 'Cancel')
    await tab.page.waitForFunction((hash) => location.hash === hash, {}, `#/data/${plain.collection}`)
    await tab.go(`data/${plain.collection}/new`, `New ${plain.single}`)
    await tab.go('account', 'Own account')
    assert.equal(await tab.page.$('dialog'), null)
  })
}

/** A reference found by its name, all digits of a number, both versions of a conflict, deleting. */
export async function linked({ user, example, tab, token }) {
  const { linked: of } = example
  const name = `T-${user.username}`
  const key = user.username.toUpperCase().replace(/[^A-Z]/g, '')
  await check(`${user.username}: a reference is found by its name`, async () => {
    await tab.go(`data/${of.collection}/new`, `New ${of.single}`)
    await tab.fill(of.label, name)
    for (const [field, text] of Object.entries(of.fields)) await tab.fill(field, text.replace('{KEY}', key))
    await tab.pick(`[name=${of.reference}]`, of.reference === 'lead' ? 'ann' : '<img')
    await tab.see('.chosen .chip')
    await tab.click('button', `Create ${of.single}`)
    await tab.says(name, 'h1')
    await tab.says(of.shown)
  })
  await check(`${user.username}: a conflict shows both versions`, async () => {
    const before = await one(token, of.collection, `${of.label}==${name}`)
    const [field, text] = of.edit
    const type = of.collection.toLowerCase()
    await tab.go(`data/${of.collection}/${before.id}`, name)
    await tab.click('button', 'Edit')
    if (of.enum[0] === field) await tab.choose(`[name=${field}]`, text)
    else await tab.fill(field, text)
    const { version } = before.meta
    await api('PATCH', `/api/v1/${of.collection}/${before.id}`,
      { token, body: { data: { type, id: before.id, attributes: of.faster, meta: { version } } } })
    await tab.click('button', 'Save')
    await tab.says('Somebody else has changed this', 'dialog')
    await tab.says('faster', 'dialog .theirs')
    await tab.says(text, 'dialog .mine')
    await tab.audit('the dialog')
    await tab.click('button', 'Back to the form')
    await tab.says('Not saved', '.summary')
    await tab.click('button', 'Save')
    await tab.click('button', 'Save mine over it')
    await tab.gone('dialog')
    await tab.says(text, 'dd')
    await tab.says('faster', 'dd, h1')
    const after = await one(token, of.collection, `id==${before.id}`)
    assert.equal(after.attributes[field], text)
    assert.equal(after.attributes[Object.keys(of.faster)[0]], 'faster')
  })
}

/** What may be of several types is chosen with its type. */
export async function oneOf({ user, example, tab, token, ids }) {
  const { oneOf: of } = example
  const label = `one of ${user.username}`
  await check(`${user.username}: one of several types is chosen`, async () => {
    const [collection, name] = of.of
    const other = await api('GET', `/api/v1/${collection}/${ids[collection]}`, { token })
    await tab.go(`data/${of.collection}/new`)
    await tab.fill(of.label, label)
    for (const [field, text] of Object.entries(of.fields)) await tab.fill(field, text)
    if (of.reference) await tab.pick(`[name=${of.reference[0]}]`, '<img')
    await tab.choose('[aria-label=Kind]', of.kind)
    await tab.pick(`[name=${of.field}]`, other.data.attributes[name].slice(0, 12))
    await tab.page.locator('form .primary').click()
    if (of.needsDepartment && user.username === 'superadmin') {
      await tab.see('.fault:not(:empty), .summary p')
      await tab.click('button', 'Cancel')
      await tab.shown()
      return
    }
    await tab.says(label, 'h1')
    const made = await one(token, of.collection, `${of.label}=='${label}'`)
    const full = await api('GET', `/api/v1/${of.collection}/${made.id}?include=${of.field}`, { token })
    assert.deepEqual(full.data.relationships[of.field].data, { type: of.kind, id: ids[collection] })
  })
}

/** Members of a to-many relationship. */
export async function members({ user, example, tab, token, ids }) {
  const { members: of } = example
  await check(`${user.username}: members of a relationship are put in and taken out`, async () => {
    const at = `/api/v1/${of.collection}/${ids[of.collection]}/relationships/${of.relationship}`
    const linkage = async () => (await api('GET', at, { token })).data.map(({ id }) => id)
    assert.deepEqual(await linkage(), [])
    await tab.go(`data/${of.collection}/${ids[of.collection]}`)
    await tab.pick(`[aria-label="Add to ${of.title.toLowerCase()}"]`, '<img')
    await tab.click('button', 'Add')
    await tab.see(`[aria-label=${of.title}] td`)
    assert.deepEqual(await linkage(), [ids[of.of]])
    assert.equal(await tab.page.evaluate(() => document.activeElement.getAttribute('role')), 'combobox', 'for the next one')
    await tab.page.locator(`[aria-label=${of.title}] td button`).click()
    await tab.says(`No ${of.title.toLowerCase()} yet`)
    assert.deepEqual(await linkage(), [])
  })
}

export async function deleting({ user, example, tab, token }) {
  const { plain } = example
  await check(`${user.username}: deleting asks first`, async () => {
    const found = await one(token, plain.collection, `${plain.label}=='Ten ${user.username}'`)
    const name = found.attributes[plain.label]
    await tab.go(`data/${plain.collection}/${found.id}`, name)
    await tab.click('button', 'Delete')
    await tab.says(`Delete ${name}?`, 'dialog')
    await tab.page.keyboard.press('Escape')
    await tab.gone('dialog')
    assert.equal(await tab.page.evaluate(() => document.activeElement.innerText), 'Delete', 'the focus is where it was')
    await tab.click('button', 'Delete')
    await confirmed(tab)
    await tab.says(`${name} deleted`)
    assert.equal(await one(token, plain.collection, `id==${found.id}`), undefined)
  })
}
