/** Waits 20 calls deep; prints "ready". */
public class Deep {
    static int deep(int left) throws InterruptedException {
        if (left > 0) return deep(left - 1) + 1;
        System.out.println("ready");
        Thread.sleep(600_000);
        return 0;
    }

    public static void main(String[] arguments) throws InterruptedException {
        deep(20);
    }
}
